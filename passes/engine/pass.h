/* A pass: one file, one exported object.  It says what it needs, makes and breaks; a pipeline is proved well ordered
 * from that before anything runs (passes/pipelines.h). */
#ifndef PASSES_ENGINE_PASS_H
#define PASSES_ENGINE_PASS_H

#include "ir/build.h"
#include "passes/recipe/recipe.h"

/* What a rule or pass may do to values. */
typedef enum Exactness {
    EXACT,     /* nothing: equal bits, -0 and NaN included */
    ROUNDS,    /* another order of the same roundings */
    ELASTIC,   /* fewer roundings, among nodes that we placed ourselves */
    PRECISION, /* another width: the pass exists to change it */
    MEANING,   /* another computation: training instead of inference */
} Exactness;

typedef enum FactBit {
#define FACT(name, check, what) FACT_BIT_##name,
#include "passes/engine/facts.def"
#undef FACT
    FACT_COUNT
} FactBit;

typedef uint32_t FactSet;
enum FactMask {
    NO_FACTS = 0,
#define FACT(name, check, what) name = 1 << FACT_BIT_##name,
#include "passes/engine/facts.def"
#undef FACT
};

typedef struct Rule Rule;

/* What all passes of one run may ask. */
typedef struct PassOptions {
    bool exact_casts;     /* no ELASTIC rules */
    bool trace;           /* a remark for each application of a rule */
    const Recipe *recipe; /* of the training step; null: the defaults */
} PassOptions;

/* One run of one pass. */
typedef struct PassRun {
    const struct Pass *pass;
    const PassOptions *options;
    Diag *diag;
    Arena *scratch;   /* emptied after the pass */
    int64_t changes;  /* made so far: applications of rules, nodes folded, merged or dropped */
    int64_t allowed;  /* applications of rules that are still allowed; negative: any number */
    int64_t *applied; /* of each rule of the pass; null for passes without rules */
} PassRun;

typedef struct Pass {
    const char *name;
    FactSet needs, makes, breaks;
    Exactness may; /* what it may do to values */
    bool rebinds;  /* inputs change their types: values before and after are not comparable */
    const Rule *rules;
    size_t n_rules;
    Status (*run)(Graph *g, PassRun *run); /* null: the rules, to their fixpoint */
    void (*after)(Graph *g, PassRun *run); /* notes for whoever asks what became of the graph; may be null */
} Pass;

/* The pass of that name (hyphens, or underlines), or null. */
const Pass *pass_find(const char *name);

/* All passes, and how many. */
extern const Pass *const all_passes[];
extern const size_t n_all_passes;

/* Runs a pass on a graph; `run` may be null (no options, no limit). */
Status pass_run(const Pass *pass, Graph *g, PassRun *run);

/* "TYPED". */
const char *fact_name(FactBit bit);

/* Checks each fact of a set; INVALID with located complaints where one does not hold. */
Status facts_check(FactSet set, Graph *g);

#endif
