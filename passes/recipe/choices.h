/* What became of the parameters of a model, and why: filled by choose-trainable, printed by whoever sums up. */
#ifndef PASSES_RECIPE_CHOICES_H
#define PASSES_RECIPE_CHOICES_H

#include "ir/graph.h"

typedef enum ChoiceKind {
    CHOICE_TRAINED,   /* a state that gradients change */
    CHOICE_STATISTIC, /* a state of a BatchNormalization */
    CHOICE_TIED,      /* another state stands for it */
    CHOICE_CONSTANT,  /* stays as it is */
    CHOICE_FOLDED,    /* a part of another state */
} ChoiceKind;

typedef struct Choice {
    const char *name; /* in graphs */
    const char *file; /* in the file */
    const char *path; /* as people see it */
    const Type *type;
    Payload *payload;
    uint32_t src; /* node of the file that states it; 0: an initializer */
    ChoiceKind kind;
    const char *reason;  /* "weight of node 3 /fc/Gemm" */
    const char *tied_to; /* of TIED: name of the state */
    bool transposed;     /* and it is that one transposed */
} Choice;

typedef struct Choices {
    Choice *list; /* in the order of the model; lives with the graph */
    size_t n, cap;
} Choices;

/* The entry of a name, or null. */
const Choice *choice_find(const Choices *c, const char *name);

/* How many of a kind, and their elements. */
size_t choices_count(const Choices *c, ChoiceKind kind, int64_t *elements);

#endif
