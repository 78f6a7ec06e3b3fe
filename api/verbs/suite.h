/* ONNX conformance folders: each has model.onnx and test_data_set_N with stored inputs and outputs. */
#ifndef API_VERBS_SUITE_H
#define API_VERBS_SUITE_H

#include "ops/card/eval.h"

typedef enum Verdict { VERDICT_PASSED, VERDICT_FAILED, VERDICT_SKIPPED } Verdict;

/* A form that the graph is written in and read back from, which must change neither its text nor its results. */
typedef enum SuiteForm { FORM_NONE, FORM_QIR, FORM_ONNX } SuiteForm;

typedef struct SuiteOptions {
    double rtol, atol; /* 0, 0: ONNX's own 1e-3 and 1e-7 */
    Parallel *pool;
    SuiteForm through;
    const char *filter;     /* only folders whose name holds this; null: all */
    const char *exceptions; /* a file of lines "NAME reason" or "NAME [TAG] reason": these are skipped; null: none.
                               FILE#TAG names the tag whose lines count besides those without one */
    void (*tell)(void *user, Verdict verdict, const char *name, const char *op, const char *why);
    void *user;
} SuiteOptions;

typedef struct SuiteCount {
    int passed, failed, skipped;
} SuiteCount;

/* Runs every folder below `dir`, in the order of their names. */
Status suite_run(Memory *m, Diag *d, const char *dir, const SuiteOptions *options, SuiteCount *count);

#endif
