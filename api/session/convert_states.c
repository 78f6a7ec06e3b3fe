#include "api/session/convert_states.h"

#include <string.h>

#include "api/session/moments.h"
#include "api/session/stored_states.h"
#include "base/bytes.h"
#include "ir/role.h"
#include "ops/update/blocks.h"
#include "passes/recipe/stored.h"

/* What is under way. */
typedef struct Converting {
    Conversion *c;
    Map have, want; /* by name */
    bool *used, *done;
    const char *denied; /* what would change and may not: "states" or "weights"; null: nothing */
} Converting;

/* ---- places ---- */

static Map index_of(Arena *arena, const StateSlot *slots, size_t n)
{
    Map m;
    map_open(&m, arena);
    for (size_t i = 0; i < n; i++)
        map_put(&m, slots[i].name, NULL)->value.u = i;
    return m;
}

static Tensor *old_of(const Converting *v, const Node *n)
{
    const MapEntry *e = n ? map_find(&v->have, n->name) : NULL;
    return e ? v->c->old[e->value.u] : NULL;
}

static void drop_old(const Converting *v, const Node *n)
{
    const MapEntry *e = n ? map_find(&v->have, n->name) : NULL;
    if (!e)
        return;
    v->used[e->value.u] = true;
    tensor_drop(v->c->heap, v->c->old[e->value.u]);
    v->c->old[e->value.u] = NULL;
}

static void give(const Converting *v, const Node *n, Tensor *value)
{
    const MapEntry *e = n ? map_find(&v->want, n->name) : NULL;
    if (!e)
        return;
    v->done[e->value.u] = true;
    v->c->made[e->value.u] = value;
}

static Tensor *room(const Converting *v, const Node *n)
{
    return n ? tensor_alloc(v->c->heap, n->type) : NULL;
}

/* ---- types, which are those of two steps ---- */

static bool same_type(const Node *a, const Node *b)
{
    return (!a && !b) || (a && b && a->type->dtype == b->type->dtype && type_same_shape(a->type, b->type));
}

static const char *width_of(const Node *n)
{
    const DType d = n->type->dtype;
    if (node_stored(n))
        return dtype_name(d);
    return d == U8 ? "8bit" : d == U4 ? "4bit" : d == F8E4M3 ? "fp8" : dtype_name(d);
}

static void count(Conversion *c, const char *what, const char *from, const char *to)
{
    for (size_t i = 0; i < c->n_changes; i++) {
        WidthChange *k = &c->changes[i];
        if (strcmp(k->what, what) == 0 && strcmp(k->from, from) == 0 && strcmp(k->to, to) == 0) {
            k->n++;
            return;
        }
    }
    if (c->n_changes < MOST_WIDTHS)
        c->changes[c->n_changes++] = (WidthChange){ what, from, to, 1 };
}

/* The f32 of a state that is no code, in the place of its numbers. */
static void take_floats(const Tensor *from, Tensor *numbers)
{
    for (int64_t i = 0; i < tensor_elements(numbers); i++)
        ((float *)numbers->data)[i] = (float)tensor_get_f64(from, i);
}

/* ---- what optimizers remember ---- */

static Status convert_moment(Converting *v, const Node *to, const Moment *as, const Node *from, const Moment *was)
{
    Conversion *c = v->c;
    const Tensor *old = old_of(v, from), *of_scale = old_of(v, was->scale);
    Tensor *numbers = tensor_alloc(c->heap, stored_type(c->to, to)), *codes = numbers, *scale = NULL;
    if (was->codes)
        state_numbers(was->name, was->block, old, of_scale, numbers->data);
    else
        take_floats(old, numbers);
    if (as->codes) {
        codes = room(v, to);
        scale = room(v, as->scale);
        TRY(moment_round(c->to, as, numbers, codes, scale));
        tensor_drop(c->heap, numbers);
    }
    give(v, to, codes);
    give(v, as->scale, scale);
    drop_old(v, from);
    drop_old(v, was->scale);
    count(c, "states", width_of(from), width_of(to));
    return OK;
}

static Status look_at_moment(Converting *v, const char *parameter, const char *kind)
{
    Moment as, was;
    const Node *to = moment_of(v->c->to, parameter, kind, &as), *from = moment_of(v->c->from, parameter, kind, &was);
    if (!to || !from || !type_same_shape(to->type, from->type) || !old_of(v, from) ||
        (was.codes && !old_of(v, was.scale)))
        return OK;
    if (same_type(to, from) && same_type(as.scale, was.scale) && as.block == was.block)
        return OK;
    if ((!as.codes && to->type->dtype != F32) || (!was.codes && from->type->dtype != F32))
        return OK;
    if (!v->c->states)
        v->denied = "states";
    return v->c->states ? convert_moment(v, to, &as, from, &was) : OK;
}

/* ---- weights ---- */

static const Node *state_of(const qcc_step *s, const char *name)
{
    const Graph *g = module_graph(s->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

/* A weight with what its codes have beside them. */
typedef struct Stored {
    const Node *weight, *scale, *zero;
    bool coded;
    StoredForm form;
    StoredKind kind;
} Stored;

static Status look_up(const qcc_step *s, const char *name, Stored *w)
{
    const Node *coded = stored_node(s, name);
    *w = (Stored){ .weight = coded ? coded : state_of(s, name), .coded = coded != NULL };
    if (!coded)
        return OK;
    w->scale = stored_scale(coded->graph, name);
    w->zero = stored_zero(coded->graph, name);
    TRY(stored_kind(s, coded, &w->kind));
    return stored_form(&w->form, node_stored(coded), &s->cx->scratch, &s->cx->diag);
}

static void convert_weight(Converting *v, const Stored *to, const Stored *from)
{
    Conversion *c = v->c;
    Tensor *numbers = tensor_alloc(c->heap, stored_type(c->to, to->weight)), *codes = numbers;
    if (from->coded)
        stored_numbers(old_of(v, from->weight), old_of(v, from->scale), old_of(v, from->zero), numbers);
    else
        take_floats(old_of(v, from->weight), numbers);
    if (to->coded) {
        Tensor *scale = room(v, to->scale), *zero = room(v, to->zero);
        codes = room(v, to->weight);
        stored_begin(&to->form, to->weight->name, numbers, codes, scale, zero, &c->to->cx->scratch);
        tensor_drop(c->heap, numbers);
        give(v, to->scale, scale);
        give(v, to->zero, zero);
    }
    give(v, to->weight, codes);
    drop_old(v, from->weight);
    drop_old(v, from->scale);
    drop_old(v, from->zero);
    count(c, "weights", width_of(from->weight), width_of(to->weight));
}

static Status look_at_weight(Converting *v, const char *name)
{
    Stored to, from;
    TRY(look_up(v->c->to, name, &to));
    TRY(look_up(v->c->from, name, &from));
    if (!to.weight || !from.weight || (!to.coded && !from.coded) ||
        (to.coded && from.coded && stored_alike(&to.kind, &from.kind)) ||
        !type_same_shape(to.weight->type, from.weight->type) || !old_of(v, from.weight))
        return OK;
    if ((!to.coded && to.weight->type->dtype != F32) || (!from.coded && from.weight->type->dtype != F32))
        return OK;
    if (v->c->weights)
        convert_weight(v, &to, &from);
    else
        v->denied = "weights";
    return OK;
}

/* ---- all ---- */

/* What has the same form goes as it is. */
static void take_same(Converting *v)
{
    Conversion *c = v->c;
    for (size_t i = 0; i < c->n_want; i++) {
        const MapEntry *e = v->done[i] ? NULL : map_find(&v->have, c->want[i].name);
        Tensor *old = e ? c->old[e->value.u] : NULL;
        if (!old || old->type->dtype != c->want[i].type->dtype || !type_same_shape(old->type, c->want[i].type))
            continue;
        old->type = c->want[i].type;
        c->made[i] = old;
        c->old[e->value.u] = NULL;
        v->used[e->value.u] = v->done[i] = true;
    }
}

static Status check_all(const Converting *v)
{
    const Conversion *c = v->c;
    Message *m = NULL;
    const Place place = { .file = c->file, .byte = -1 };
    Diag *d = &c->to->cx->diag;
    for (size_t i = 0; i < c->n_want + c->n_have; i++) {
        const bool wanted = i < c->n_want;
        const StateSlot *s = wanted ? &c->want[i] : &c->have[i - c->n_want];
        if (s->mark.role == STATE_scaler || (wanted ? v->done[i] : v->used[i - c->n_want]))
            continue;
        if (!m)
            m = message_new(d, SEVERITY_ERROR, USAGE, place, "differs from this step in more than widths");
        message_at(m, wanted ? "%s has nothing to come from" : "%s goes nowhere", s->name);
    }
    return m ? message_send(m) : OK;
}

static Status deny(const Converting *v)
{
    Message *m = message_new(&v->c->to->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .file = v->c->file, .byte = -1 },
                             "has %s of another width, which --convert does not say", v->denied);
    message_try(m, "--convert all");
    return message_send(m);
}

Status convert_states(Conversion *c)
{
    Arena *arena = &c->to->cx->scratch;
    Converting v = { .c = c,
                     .have = index_of(arena, c->have, c->n_have),
                     .want = index_of(arena, c->want, c->n_want),
                     .used = NEWS(arena, bool, c->n_have + 1),
                     .done = NEWS(arena, bool, c->n_want + 1) };
    for (size_t i = 0; i < c->n_want; i++) {
        const char *kinds[UPDATE_STATES], *name = c->want[i].name;
        if (c->want[i].mark.role != STATE_weight)
            continue;
        const int n = moments_of(c->to, name, kinds);
        for (int k = 0; k < n; k++)
            TRY(look_at_moment(&v, name, kinds[k]));
        TRY(look_at_weight(&v, name));
    }
    if (v.denied)
        return deny(&v);
    take_same(&v);
    return check_all(&v);
}

const char *convert_text(Arena *arena, const Conversion *c)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < c->n_changes; i++)
        text_printf(&t, "%s%zu %s from %s to %s", i ? ", " : "", c->changes[i].n, c->changes[i].what,
                    c->changes[i].from, c->changes[i].to);
    return t.n ? text_get(&t) : "";
}
