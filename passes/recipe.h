/* What a training step is to be: plain data.  Whoever reads options writes it (passes/optimizer_read.h for the
 * optimizer's part), the passes of a step read it through PassOptions.recipe.  A null recipe, and a zeroed one, mean
 * the defaults of the bare command. */
#ifndef PASSES_RECIPE_H
#define PASSES_RECIPE_H

#include "ir/graph.h"

/* ---- the optimizer: passes clip, update, ema, accumulate ---- */

/* How some parameters are trained. */
typedef struct OptimizerGroup {
    const char *selector; /* of the parameters it takes; null: every one */
    Op op;                /* the update op */
    const void *attr;     /* its attributes */
    double lr;            /* the rate that the schedule scales */
    bool spares_vectors;  /* weight decay leaves parameters of rank 0 and 1 alone */
} OptimizerGroup;

typedef enum ScheduleKind { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE, SCHEDULE_ONECYCLE } ScheduleKind;

/* The rate over the steps 1, 2 ..: it rises for `warmup` steps, then follows its kind to the last one. */
typedef struct Schedule {
    ScheduleKind kind;
    int64_t warmup;      /* steps */
    double warmup_ratio; /* or a part of all steps; 0: `warmup` says it */
    int64_t total;       /* steps of the run: the initial value of the state qcc.total_steps; 0: not known yet */
    double min_lr;       /* where linear and cosine end */
    double div_factor, final_div_factor; /* onecycle begins at lr / div_factor and ends final_div_factor below that */
} Schedule;

typedef struct Recipe {
    const OptimizerGroup *groups; /* the first takes every parameter; of the others the last that selects it */
    size_t n_groups;              /* 0: the defaults */
    const Map
        *members; /* name of a parameter -> its group's number (passes/groups.h); null: update asks the selectors */
    Schedule schedule;
    double clip_norm, clip_value; /* 0: not clipped */
    int64_t accumulate;           /* micro-batches of a step; 0 and 1: the step is one */
    double ema;                   /* decay of the averaged weights; 0: none */
} Recipe;

#endif
