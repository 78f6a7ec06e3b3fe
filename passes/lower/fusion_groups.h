/* Which calls run together: groups that grow until nothing more fits (passes/lower/grow_fusion.c makes nodes of them). */
#ifndef PASSES_LOWER_FUSION_GROUPS_H
#define PASSES_LOWER_FUSION_GROUPS_H

#include "ops/region/schedule.h"

/* Calls of one graph that run together, in list order; of a call that no region holds, that one alone. */
typedef struct FusionGroup {
    Node **calls;
    size_t n;
    bool fusible;
    int part;                       /* StepPart: no group is of two */
    int failures;                   /* tries to merge it that failed */
    size_t rank;                    /* its place among groups: behind all that it reads */
    struct FusionGroup *into;       /* it was merged into that one; null: it stands */
    uint32_t seen;                  /* of the search under way */
    const struct FusionGroup *told; /* with which the last remark was */
} FusionGroup;

typedef struct FusionGroups {
    Graph *graph;
    Arena *arena;
    Facts of;            /* FusionGroup *, by node; constants have none */
    size_t n;            /* calls */
    FusionGroup **ranks; /* groups by rank; null: it was merged away */
    uint32_t search;
} FusionGroups;

/* Puts each call of a graph into the largest group that may hold it; leaves a remark for each pair of neighbours that
 * stay apart. */
void fusion_groups_find(FusionGroups *gs, Graph *g, Arena *arena, Diag *remarks);

/* The group of a node; null for constants and inputs. */
FusionGroup *fusion_group_of(FusionGroups *gs, const Node *n);

/* All calls in an order in which each group's stand together and behind all that they read; n_calls of them. */
Node **fusion_groups_order(FusionGroups *gs, size_t *n_calls);

/* The region that the calls of a group are. */
void fusion_group_region(FusionGroups *gs, const FusionGroup *group, Region *r);

#endif
