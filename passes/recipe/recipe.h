/* What a training step is to be: plain data.  Whoever reads options writes it (passes/recipe/optimizer_read.h for the
 * optimizer's part), the passes of a step read it through PassOptions.recipe.  A null recipe, and a zeroed one, mean
 * the defaults of the bare command. */
#ifndef PASSES_RECIPE_RECIPE_H
#define PASSES_RECIPE_RECIPE_H

#include "passes/recipe/teacher.h"
#include "passes/target/target.h"

/* ---- the optimizer: passes clip, update, ema, accumulate ---- */

/* In how many bits an optimizer keeps its states. */
typedef enum StatesKind { STATES_F32, STATES_8BIT, STATES_4BIT, STATES_FP8, STATES_KINDS } StatesKind;

enum { STATES_LEAST = 4096 }; /* elements of a parameter whose states are worth it */

/* How some parameters are trained. */
typedef struct OptimizerGroup {
    const char *selector; /* of the parameters it takes; null: every one */
    Op op;                /* the update op */
    const void *attr;     /* its attributes */
    double lr;            /* the rate that the schedule scales */
    bool spares_vectors;  /* weight decay leaves parameters of rank 0 and 1 alone */
    bool says_decay;      /* a --group says it for those that it takes: of scales nothing else counts */
    StatesKind states;
    int64_t states_min; /* elements of a parameter that has states of fewer bits; 0: STATES_LEAST */
} OptimizerGroup;

typedef enum ScheduleKind {
    SCHEDULE_CONSTANT,
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,
    SCHEDULE_ONECYCLE,
    SCHEDULE_STEP,
    SCHEDULE_MULTISTEP,
} ScheduleKind;

/* The rate over the steps 1, 2 ..: it rises for `warmup` steps, then follows its kind to the last one. */
typedef struct Schedule {
    ScheduleKind kind;
    int64_t warmup;      /* steps */
    double warmup_ratio; /* or a part of all steps; 0: `warmup` says it */
    int64_t total;       /* steps of the run: the initial value of the state qcc.total_steps; 0: not known yet */
    double min_lr;       /* where linear and cosine end */
    int64_t every;       /* step: the rate is multiplied with `factor` each time so many steps are done */
    const int64_t *at;   /* multistep: when these are */
    size_t n_at;
    double factor;
    double div_factor, final_div_factor; /* onecycle begins at lr / div_factor and ends final_div_factor below that */
} Schedule;

/* ---- what is trained: passes choose-trainable, enter-training ---- */

/* What became of the parameters (passes/recipe/choices.h). */
typedef struct Choices Choices;

/* ---- the losses: pass attach-loss ---- */

/* clang-format off */
/*     enumerator      word             op                  what                                                       */
#define LOSSES(_)                                                                                                      \
    _( CROSS_ENTROPY,  "cross_entropy", OP_cross_entropy,   "softmax, then classes or probabilities that are wanted" ) \
    _( NLL,            "nll",           OP_nll,             "log-probabilities, classes that are wanted"             ) \
    _( FOCAL,          "focal",         OP_focal,           "cross_entropy of classes that listens less to what is learnt" ) \
    _( MSE,            "mse",           OP_mse,             "squared differences"                                    ) \
    _( L1,             "l1",            OP_l1,              "absolute differences"                                   ) \
    _( HUBER,          "huber",         OP_huber,           "squared up to delta, absolute beyond"                   ) \
    _( BCE_LOGITS,     "bce_logits",    OP_bce_logits,      "sigmoid, then yes or no for each element"               ) \
    _( OUTPUT,         "output",        OP_COUNT,           "the model computes it: a scalar output"                 ) \
    _( EXTERNAL,       "external",      OP_COUNT,           "the host gives the gradients of outputs"                )
/* clang-format on */

typedef enum LossKind {
#define LOSS_ENUMERATOR(id, word, op, what) LOSS_##id,
    LOSSES(LOSS_ENUMERATOR)
#undef LOSS_ENUMERATOR
        LOSS_COUNT
} LossKind;

/* One loss; several add up. */
typedef struct LossSpec {
    LossKind kind;
    const char *const *outputs; /* names; none: the output that fits */
    size_t n_outputs;
    double factor; /* of this loss in the sum */
    bool has_axis;
    int64_t axis; /* of classes */
    double label_smoothing, delta, gamma;
    int64_t ignore_index;
    bool soft;                 /* targets are probabilities, not classes */
    bool sums;                 /* instead of taking the mean */
    const char *weight_file;   /* of classes, or of positive targets: as the user named it */
    const Tensor *weight;      /* what is in it; whoever reads options reads it */
    const char *sample_weight; /* name of an input to add; null: none */
} LossSpec;

/* Gradients that come from outside, of no output: the loss is 0, whatever the weights are, and nothing is learned. */
static inline bool loss_is_nothing(const LossSpec *l)
{
    return l->kind == LOSS_EXTERNAL && !l->n_outputs;
}

/* ---- precision: passes insert-amp, scale-loss, shadow ---- */

typedef struct AmpTable AmpTable;   /* lists that a file changes (passes/amp/table.h) */
typedef struct AmpLedger AmpLedger; /* what was decided, and why (passes/amp/amp.h) */

typedef enum ScaleKind { SCALE_DEFAULT, SCALE_OFF, SCALE_STATIC, SCALE_DYNAMIC } ScaleKind;

/* How the loss is scaled.  SCALE_DEFAULT is dynamic for f16 and off otherwise. */
typedef struct LossScale {
    ScaleKind kind;
    double init, growth, backoff, least, most; /* powers of two */
    int64_t interval, hysteresis;
    bool refills;    /* an applied step gives the hysteresis back */
    bool fast_start; /* of ops/update/scaler.h */
    bool fresh;      /* a checkpoint without a scale may be loaded: it starts anew */
} LossScale;

typedef struct Precision {
    bool on;                      /* --amp */
    DType narrow;                 /* F16 or BF16 */
    bool walks;                   /* labels by the painting walk, not by the minimum cut */
    bool exact_casts;             /* no ELASTIC rules: every rounding that was placed is done */
    bool lenient;                 /* operators without a class stay f32 instead of being an error */
    const char *const *keep_wide; /* --keep-fp32: selectors of nodes that stay f32 */
    size_t n_keep_wide;
    const AmpTable *const *tables; /* --amp-table, the last one that says something counts */
    size_t n_tables;
    LossScale scale;
    AmpLedger *ledger; /* filled by the passes; null: nobody asks */
} Precision;

/* ---- quantization: passes place-quant, take-integers ---- */

typedef struct QuantSpec QuantSpec;     /* passes/recipe/quantizer.h */
typedef struct QuantLedger QuantLedger; /* what was decided, and why (passes/quant/ledger.h) */

typedef struct QuantTable QuantTable; /* lists that a file changes (passes/quant/table.h) */

/* Another quantizer for some nodes; what it does not say is as without it. */
typedef struct QuantOverride {
    const char *selector;
    const QuantSpec *spec;
    const char *from; /* "--quant-op 'op:Conv'", "lists.txt:12" */
} QuantOverride;

typedef struct Quantization {
    const QuantSpec *spec;           /* --quant; null: nothing is quantized */
    const QuantSpec *products;       /* --quant, of products of few bits: pass quantize-products; `spec` is null then */
    const char *target;              /* "ort": the row of passes/target/targets.def .. */
    const QuantTarget *own_target;   /* .. unless it is one of a file; null: it is not */
    const QuantTable *const *tables; /* --quant-table, the last line that says something counts */
    size_t n_tables;
    const QuantOverride *overrides; /* --quant-op, over these: the last one that selects a node counts */
    size_t n_overrides;
    bool freezes; /* ranges of data stay as they are from step freeze_at on */
    int64_t freeze_at;
    bool weights_alone;  /* data stay floats, and observers see them: the steps of phase=weights-first */
    QuantLedger *ledger; /* filled by the passes; null: nobody asks */
} Quantization;

/* Whom a step is quantized for; null: it is not. */
static inline const QuantTarget *quantization_target(const Quantization *q)
{
    return q->own_target ? q->own_target : q->target ? quant_target(q->target) : NULL;
}

typedef struct Recipe {
    const OptimizerGroup *groups; /* the first takes every parameter; of the others the last that selects it */
    size_t n_groups;              /* 0: the defaults */
    const Map
        *members; /* name of a parameter -> its group's number (passes/recipe/groups.h); null: update asks selectors */
    Schedule schedule;
    double clip_norm, clip_value; /* 0: not clipped */
    int64_t accumulate;           /* micro-batches of a step; 0 and 1: the step is one */
    const char *const *whole;     /* inputs that each of them reads whole, whatever their dimension 0 */
    size_t n_whole;
    bool counted;      /* the step tells what becomes of updates of what is kept in few bits */
    bool asks_counted; /* and there has to be something to count */
    double ema;        /* decay of the averaged weights; 0: none */

    const char *const *train; /* selectors: exactly these are trained; none: what the rules say */
    size_t n_train;
    const char *const *freeze; /* selectors: these are not */
    size_t n_freeze;
    const char *const *ties; /* NAME=NAME: parameters that are one */
    size_t n_ties;
    bool untied;       /* broken ties stay broken */
    bool frozen_norms; /* BatchNormalization keeps its statistics */
    bool kept_norms;   /* it stays a part of a quantized step, with parameters of its own */
    bool torch_norms;  /* and divides the variance that it remembers by n - 1 */
    bool no_dropout;   /* Dropout stays in inference form */
    Choices *choices;  /* filled by choose-trainable; null: nobody asks */

    const LossSpec *losses;
    size_t n_losses;
    Teacher teacher; /* whose scores count in the loss: pass attach-teacher */

    Precision precision;
    Quantization quantization;
} Recipe;

#endif
