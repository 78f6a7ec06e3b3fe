/* The prediction: its steps in their order, and what is said of each Q and DQ. */
#include <string.h>

#include "frontends/onnx/ort/steps.h"

/* Why a Q or DQ that is left is left. */
static const char *why_left(Calls *g, const Call *c)
{
    const Val *v = call_is_q(c) ? call_in(c, 0) : c->outs[0];
    const Call *other = call_is_q(c) ? v->from : v->n_reads ? v->reads[0].by : NULL;
    if (!other && call_is_q(c))
        return "what it reads comes from outside";
    if (!other)
        return "its value is a result of the model";
    if (!call_is_q(c) && v->result)
        return "its value is a result of the model";
    if (call_is_q(other) || call_is_dq(other))
        return arena_printf(g->arena, "%s has another scale", other->name[0] ? other->name : "the next of them");
    const char *name = other->name[0] ? other->name : other->outs[0] ? other->outs[0]->name : "";
    return arena_printf(g->arena, "%s %s is float: %s", other->was ? other->was : other->op, name,
                        other->why ? other->why : "it was made of others");
}

static FusionChange *change(Calls *g, const char *op, const char *into)
{
    Fusions *f = g->found;
    for (size_t i = 0; i < f->n_changes; i++)
        if (strcmp(f->changes[i].op, op) == 0 && f->changes[i].into && strcmp(f->changes[i].into, into) == 0)
            return &f->changes[i];
    GROW(g->arena, f->changes, f->n_changes, f->cap);
    f->changes[f->n_changes] = (FusionChange){ .op = op, .into = into };
    return &f->changes[f->n_changes++];
}

/* What became of operators: those that are another now, and those that nothing is left of. */
static void tell_changes(Calls *g, Call *const *all, size_t n)
{
    Map lost;
    map_open(&lost, g->arena);
    for (size_t i = 0; i < n; i++) {
        const char *was = all[i]->was;
        if (!was || strcmp(was, "QuantizeLinear") == 0 || strcmp(was, "DequantizeLinear") == 0)
            continue;
        map_put(&lost, was, NULL)->value.i++;
    }
    for (const Call *c = g->first; c; c = c->next) {
        MapEntry *e = c->was ? map_find(&lost, c->was) : NULL;
        if (!e)
            continue;
        e->value.i--;
        if (strcmp(c->was, c->op) == 0)
            continue;
        FusionChange *to = change(g, c->was, c->op);
        to->n++;
        to->weights = c->weights;
        to->biases = c->biases;
    }
    for (size_t i = 0; i < lost.n; i++)
        if (lost.entries[i].value.i > 0) {
            FusionChange *gone = change(g, lost.entries[i].key, "");
            gone->into = NULL;
            gone->n = (int)lost.entries[i].value.i;
        }
}

static void tell(Calls *g)
{
    for (const Call *c = g->first; c; c = c->next) {
        calls_count(g, c->op);
        if (c->fate < 0)
            continue;
        FusionFate *f = &g->found->fates[c->fate];
        if (!f->stays++)
            f->why = why_left(g, c);
    }
    for (size_t i = 0; i < g->found->n; i++)
        g->found->orphans += g->found->fates[i].stays > 0;
}

/* Nobody there computes pairs of floats of 4 bits, whatever is fused. */
static void look_for_nibbles(Calls *g)
{
    for (const Call *c = g->first; c && !g->found->refused; c = c->next)
        if ((call_is_q(c) || call_is_dq(c)) && pair_type(c) == ORT_E2M1)
            g->found->refused = "it has no Q and DQ of floats of 4 bits";
}

Status onnx_fusions(Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f)
{
    static void (*const steps[])(Calls *) = {
        ort_own_dq, ort_clean,     ort_double_pairs,     ort_merge,  ort_shapes,        ort_gemm,     ort_reshapes,
        ort_own_dq, ort_propagate, ort_float_parameters, ort_own_dq, ort_where_numbers, ort_unsigned, ort_redundant,
        ort_groups, ort_floats,    ort_neighbours,       ort_unread,
    };
    Calls g = { .arena = arena, .diag = d, .spine = spine, .found = f };
    *f = (Fusions){ .engine = "ONNX Runtime " ORT_VERSION, .how = "level " ORT_LEVEL ", x86-64", .ops_after = true };
    map_open(&f->ops, arena);
    calls_read(&g, typed);
    size_t n;
    Call **all = calls_list(&g, &n);
    for (size_t i = 0; i < COUNT(steps); i++)
        steps[i](&g);
    look_for_nibbles(&g);
    tell(&g);
    tell_changes(&g, all, n);
    return g.broken ? INVALID : OK;
}
