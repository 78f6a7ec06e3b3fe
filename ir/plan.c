#include "ir/plan.h"

#include <inttypes.h>
#include <stdlib.h>

PlanValue plan_value(const Plan *p, const Node *n, int i)
{
    PlanValue *const *values = fact_known(&p->values, n);
    return values && *values ? (*values)[i] : (PlanValue){ PLAN_ELSEWHERE, PLAN_NO_NEXT, n, i };
}

int plan_buffer(const Plan *p, const Node *n, int i)
{
    return plan_value(p, n, i).buffer;
}

size_t *plan_alive(const Plan *p, Arena *arena)
{
    size_t *alive = NEWS(arena, size_t, p->n_calls + 2);
    for (int i = 0; i < p->n_buffers; i++) {
        alive[p->buffers[i].first] += p->buffers[i].bytes;
        alive[p->buffers[i].last + 1] -= p->buffers[i].bytes; /* below zero and back: sizes wrap around */
    }
    for (int i = 1; i <= p->n_calls; i++)
        alive[i] += alive[i - 1];
    return alive;
}

static bool meet(const PlanBuffer *a, const PlanBuffer *b)
{
    return a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static int by_offset(const void *x, const void *y)
{
    const PlanBuffer *const *a = x, *const *b = y;
    return (*a)->offset < (*b)->offset ? -1 : (*a)->offset > (*b)->offset;
}

/* In the order of their offsets, a buffer can only meet those that begin before it ends. */
static const char *check_apart(const Plan *p, Arena *arena)
{
    const PlanBuffer **sorted = NEWS(arena, const PlanBuffer *, p->n_buffers + 1);
    for (int i = 0; i < p->n_buffers; i++)
        sorted[i] = &p->buffers[i];
    qsort(sorted, (size_t)p->n_buffers, sizeof *sorted, by_offset);
    for (int i = 0; i < p->n_buffers; i++) {
        const PlanBuffer *a = sorted[i];
        if (a->offset % PLAN_ALIGNMENT || a->bytes > p->arena || a->offset > p->arena - a->bytes)
            return arena_printf(arena, "buffer %d does not lie in the arena", (int)(a - p->buffers));
        for (int k = i + 1; k < p->n_buffers && sorted[k]->offset < a->offset + a->bytes; k++)
            if (meet(a, sorted[k]))
                return arena_printf(arena, "buffers %d and %d share bytes", (int)(a - p->buffers),
                                    (int)(sorted[k] - p->buffers));
    }
    return NULL;
}

static const char *check_reads(const Plan *p, Arena *arena)
{
    int at = 0;
    for (const Node *n = p->graph->first; n; n = n->next, at++)
        for (int i = 0; i < n->n_in; i++) {
            const Node *def = in(n, i);
            const int results = def ? type_results(def->type) : 0;
            for (int r = 0; r < results; r++) {
                const int b = plan_buffer(p, def, r);
                if (b != PLAN_ELSEWHERE && (at < p->buffers[b].first || at > p->buffers[b].last))
                    return arena_printf(arena, "call %d reads buffer %d, which is taken from %d to %d", at, b,
                                        p->buffers[b].first, p->buffers[b].last);
            }
        }
    return NULL;
}

const char *plan_check(const Plan *p, Arena *arena)
{
    const char *wrong = check_apart(p, arena);
    return wrong ? wrong : check_reads(p, arena);
}

void plan_print(Text *out, const Plan *p)
{
    text_printf(out, "plan of %d calls: %zu bytes, %zu live at once, %d buffers\n", p->n_calls, p->arena, p->live,
                p->n_buffers);
    for (int i = 0; i < p->n_buffers; i++) {
        const PlanBuffer *b = &p->buffers[i];
        const OpDef *def = op_of(b->maker);
        text_printf(out, "  %d: %zu bytes at %zu, calls %d to %d, %s%s%s\n", i, b->bytes, b->offset, b->first, b->last,
                    def->name, b->maker->name ? " " : "", b->maker->name ? b->maker->name : "");
    }
}
