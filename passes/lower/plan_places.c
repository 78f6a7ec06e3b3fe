#include "passes/lower/plan_places.h"

#include <stdlib.h>

static int larger_first(const void *x, const void *y)
{
    const PlanBuffer *const *a = x, *const *b = y;
    if ((*a)->bytes != (*b)->bytes)
        return (*a)->bytes > (*b)->bytes ? -1 : 1;
    return (*a)->first != (*b)->first ? ((*a)->first < (*b)->first ? -1 : 1) : (*a < *b ? -1 : 1);
}

typedef struct Placed {
    PlanBuffer **by_offset;
    int n;
} Placed;

/* The smallest gap between those taken at the same time that holds a buffer; behind all of them where there is none. */
static size_t best_gap(const Placed *placed, const PlanBuffer *b)
{
    size_t end = 0, best = 0, smallest = SIZE_MAX;
    for (int i = 0; i < placed->n; i++) {
        const PlanBuffer *o = placed->by_offset[i];
        if (o->first > b->last || b->first > o->last)
            continue;
        if (o->offset >= end && o->offset - end >= b->bytes && o->offset - end < smallest) {
            smallest = o->offset - end;
            best = end;
        }
        if (o->offset + o->bytes > end)
            end = o->offset + o->bytes;
    }
    return smallest == SIZE_MAX ? end : best;
}

static void place_largest_first(Plan *plan, Arena *arena)
{
    PlanBuffer **sorted = NEWS(arena, PlanBuffer *, plan->n_buffers + 1);
    Placed placed = { NEWS(arena, PlanBuffer *, plan->n_buffers + 1), 0 };
    for (int i = 0; i < plan->n_buffers; i++)
        sorted[i] = &plan->buffers[i];
    qsort(sorted, (size_t)plan->n_buffers, sizeof *sorted, larger_first);
    for (int i = 0; i < plan->n_buffers; i++) {
        PlanBuffer *b = sorted[i];
        b->offset = best_gap(&placed, b);
        int at = placed.n++;
        for (; at > 0 && placed.by_offset[at - 1]->offset > b->offset; at--)
            placed.by_offset[at] = placed.by_offset[at - 1];
        placed.by_offset[at] = b;
    }
}

/* Among thousands of buffers trying each against all others takes too long: here each takes a place that one of its size
 * left, and behind all others where there is none. */
static void place_by_size(Plan *plan, Arena *arena)
{
    Map free_places; /* by bytes: the buffers that were there before, by `after` */
    int *after = NEWS(arena, int, plan->n_buffers + 1), *ending = NEWS(arena, int, plan->n_calls + 2);
    int *same_end = NEWS(arena, int, plan->n_buffers + 1), done = 0;
    size_t end = 0;
    bool fresh;
    map_open(&free_places, arena);
    for (int i = 0; i < plan->n_buffers; i++) {
        PlanBuffer *b = &plan->buffers[i];
        for (; done < b->first; done++)
            for (int k = ending[done]; k; k = same_end[k - 1]) {
                MapEntry *e = map_put_u64(&free_places, plan->buffers[k - 1].bytes, &fresh);
                after[k - 1] = (int)e->value.i;
                e->value.i = k;
            }
        MapEntry *e = map_put_u64(&free_places, b->bytes, &fresh);
        b->offset = e->value.i ? plan->buffers[e->value.i - 1].offset : end;
        if (e->value.i)
            e->value.i = after[e->value.i - 1];
        else
            end += b->bytes;
        same_end[i] = ending[b->last];
        ending[b->last] = i + 1;
    }
}

void plan_place(Plan *plan, Arena *arena)
{
    enum { MANY = 8192 };
    (plan->n_buffers > MANY ? place_by_size : place_largest_first)(plan, arena);
    for (int i = 0; i < plan->n_buffers; i++)
        if (plan->buffers[i].offset + plan->buffers[i].bytes > plan->arena)
            plan->arena = plan->buffers[i].offset + plan->buffers[i].bytes;
}
