/* Pipelines: arrays of passes, proved well ordered before anything runs. */
#ifndef PASSES_PIPELINES_H
#define PASSES_PIPELINES_H

#include "passes/engine/pass.h"

typedef struct Pipeline {
    const char *name;
    FactSet given; /* facts that hold before the first pass */
    const Pass *const *passes;
    size_t n;
    bool bodies; /* it runs on bodies of the graph whose turns are known, too */
} Pipeline;

/* How much is proved after each pass. */
typedef enum VerifyEach {
    VERIFY_NOTHING,
    VERIFY_GRAPH,  /* the graph is one, the facts claimed hold, its text reads back as itself */
    VERIFY_VALUES, /* and it computes, on seeded inputs, what it computed before, within what the pass may do */
} VerifyEach;

/* What one pass of a run did. */
typedef struct PassReport {
    const Pass *pass;
    int64_t changes;
    size_t before, after; /* nodes */
    double seconds;
    const int64_t *applied; /* of each rule; null for passes without rules */
} PassReport;

typedef struct PipelineOptions {
    PassOptions pass;
    const char *print_after; /* name of a pass, or "all" */
    const char *stop_after;  /* name of a pass */
    int64_t pass_limit;      /* applications of rules and runs of other passes, then no more; 0: no limit */
    VerifyEach verify_each;
    uint64_t seed;                                                 /* of the inputs of VERIFY_VALUES */
    void (*print)(void *user, const char *pass, const char *text); /* hears print_after */
    void (*report)(void *user, const PassReport *report);          /* hears each pass; for --time-passes */
    void *user;
} PipelineOptions;

/* Proves that each fact a pass needs was given or made before it and not broken since; INVALID with the pass and fact
 * named. */
Status pipeline_check(const Pipeline *p, Diag *diag);

/* Runs it on a graph; null options: nothing printed, nothing limited. */
Status pipeline_run(const Pipeline *p, Graph *g, const PipelineOptions *options);

/* The same on every graph of a module. */
Status pipeline_run_module(const Pipeline *p, Module *m, const PipelineOptions *options);

/* Runs it on those bodies alone, of a graph on which its passes have run one by one. */
Status pipeline_run_bodies(const Pipeline *p, Graph *g, const PipelineOptions *options);

/* The pipeline of that name, or null. */
const Pipeline *pipeline_find(const char *name);

/* All pipelines, and how many. */
extern const Pipeline all_pipelines[];
extern const size_t n_all_pipelines;

#endif
