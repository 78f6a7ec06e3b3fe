/* What a context holds, and how a public call enters it. */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include <locale.h>

#include "base/parallel.h"
#include "ops/cards.h"
#include "qcc/qcc.h"

struct qcc_context {
    Memory memory;
    Arena scratch; /* of the call that runs */
    Diag diag;     /* its messages live in scratch */
    Limits limits;
    qcc_context_options options;
    const Kernels *kernels;
    Parallel *pool;  /* opened when first wanted */
    bool no_pool;    /* it was refused */
    locale_t locale; /* C: numbers are written and read the same everywhere */
    long pid;
    _Atomic int stop;  /* times the call was asked to end */
    _Atomic int hurry; /* not 0: at once */
    _Atomic int save;  /* a run is asked for a checkpoint */
    _Atomic int grace; /* seconds that a run asked to end has; 0: nothing was said */
    bool busy;
    bool poisoned; /* after a mistake of ours: only closing is legal */
    bool as_json;  /* messages, as the command was asked to */
    int verbosity; /* of the command: -1 errors alone, 0, 1 remarks too */
    qcc_model *models;
    qcc_step *steps;
    qcc_session *sessions;
    qcc_scaler *scalers;
};

/* Runs fn(arg) as a call of the context: refused in a forked child and inside callbacks, with a landing point for
 * exhausted memory, leaving errno alone. */
qcc_status context_call(qcc_context *cx, Status (*fn)(void *arg), void *arg);

/* The threads of the context; null for one. */
Parallel *context_pool(qcc_context *cx);

/* Gives back the handles that were opened after these, the newest first. */
void context_forget(qcc_context *cx, const qcc_session *session, const qcc_step *step, const qcc_model *model);

/* Applies "name=value" pairs, separated by commas or lines, to limits. */
Status limits_read(Diag *d, Place place, Str text, Limits *limits);

#endif
