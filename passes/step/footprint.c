#include "passes/step/footprint.h"

#include "base/map.h"
#include "ir/role.h"

/* Of a value. */
typedef struct Life {
    int readers; /* still to come */
    bool counted_apart;
} Life;

static uint64_t bytes_of(const Type *t)
{
    size_t bytes;
    uint64_t sum = 0;
    if (t->kind == TYPE_TENSOR)
        return type_known(t) && type_bytes(t, &bytes) ? bytes : 0;
    for (int i = 0; t->kind == TYPE_TUPLE && i < t->n_parts; i++)
        if (t->parts[i]->kind == TYPE_TENSOR && type_known(t->parts[i]) && type_bytes(t->parts[i], &bytes))
            sum += bytes;
    return sum;
}

void footprint_add(FootprintBytes parts, FootprintPart part, const Type *t)
{
    if (t->kind == TYPE_TENSOR)
        parts[part][t->dtype] += bytes_of(t);
    for (int i = 0; t->kind == TYPE_TUPLE && i < t->n_parts; i++)
        if (t->parts[i]->kind == TYPE_TENSOR)
            parts[part][t->parts[i]->dtype] += bytes_of(t->parts[i]);
}

uint64_t footprint_sum(const uint64_t by_type[DTYPE_COUNT])
{
    uint64_t sum = 0;
    for (int i = 0; i < DTYPE_COUNT; i++)
        sum += by_type[i];
    return sum;
}

/* What a state is for; `trained` are the names of those that are trained. */
static FootprintPart part_of(const Node *n, const Map *trained)
{
    const RoleMark mark = node_role(n);
    switch ((StateRole)mark.role) {
    case STATE_weight:
        return n->flags & NODE_TRAINED ? FOOTPRINT_trained : FOOTPRINT_untrained;
    case STATE_statistic:
        return FOOTPRINT_statistics;
    case STATE_moment:
        return FOOTPRINT_moments;
    case STATE_shadow:
        return FOOTPRINT_shadows;
    case STATE_master:
        return FOOTPRINT_masters;
    case STATE_ema:
        return FOOTPRINT_averages;
    case STATE_quant:
        return mark.of && map_find(trained, mark.of) ? FOOTPRINT_scales : FOOTPRINT_ranges;
    default:
        return FOOTPRINT_counters;
    }
}

static void count_states(Graph *g, Footprint *f, Arena *scratch)
{
    Map trained;
    map_open(&trained, scratch);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && g->inputs[i]->flags & NODE_TRAINED)
            map_put(&trained, g->inputs[i]->name, NULL);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i]; /* data stay for the whole step */
        footprint_add(f->parts, n->op == OP_state ? part_of(n, &trained) : FOOTPRINT_inputs, n->type);
    }
}

static void count_gradients(Graph *g, Facts *lives, Footprint *f)
{
    for (int i = 0; i < graph_n_results(g); i++) {
        Node *n = graph_result(g, i);
        if (!n || graph_result_mark(g, i).role != RESULT_gradient)
            continue;
        Life *life = fact(lives, n);
        if (!life->counted_apart)
            footprint_add(f->parts, FOOTPRINT_gradients, n->type);
        life->counted_apart = true;
    }
}

/* Views of what others hold take nothing. */
static bool takes_room(const Node *n)
{
    return !node_is_holder(n) && n->op != OP_const && n->op != OP_param;
}

/* What nodes in the bodies of a node in a body make, one body at a time: all of it. */
static uint64_t made_within(const Node *n)
{
    uint64_t most = 0;
    for (int r = 0; r < n->n_regions; r++) {
        uint64_t sum = 0;
        for (const Node *k = n->regions[r]->first; k; k = k->next)
            sum += takes_room(k) ? bytes_of(k->type) : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* The most that values of a graph take at once, each one kept until its last reader has run; `bodies` says what those of
 * a node take. */
static uint64_t most_alive(const Graph *g, Facts *lives, uint64_t (*bodies)(const Node *n, Arena *scratch),
                           Arena *scratch)
{
    uint64_t alive = 0, most = 0;
    for (Node *n = g->first; n; n = n->next) {
        Life *life = fact(lives, n);
        life->readers = node_n_uses(n);
        if (takes_room(n) && !life->counted_apart)
            alive += bytes_of(n->type);
        const uint64_t now = alive + (n->n_regions ? bodies(n, scratch) : 0);
        most = now > most ? now : most;
        for (int i = 0; i < n->n_in; i++) {
            Node *def = in(n, i);
            Life *of = def && def->graph == g ? fact(lives, def) : NULL;
            if (of && !node_is_input(def) && def->op != OP_state && --of->readers == 0 && takes_room(def) &&
                !of->counted_apart)
                alive -= bytes_of(def->type);
        }
    }
    return most;
}

static uint64_t within(const Node *n, Arena *scratch)
{
    (void)scratch;
    return made_within(n);
}

uint64_t footprint_bodies(const Node *n, Arena *scratch)
{
    uint64_t most = 0;
    for (int r = 0; r < n->n_regions; r++) {
        const Graph *body = n->regions[r];
        Facts lives = facts_open(scratch, sizeof(Life));
        uint64_t sum = 0;
        for (size_t i = 0; i < body->n_inputs; i++) /* what goes round */
            sum += bytes_of(body->inputs[i]->type);
        sum += most_alive(body, &lives, within, scratch);
        most = sum > most ? sum : most;
    }
    return most;
}

static void count_constants(const Graph *g, Footprint *f)
{
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_const)
            footprint_add(f->parts, FOOTPRINT_constants, n->type);
}

Footprint footprint_of(Graph *g, Arena *scratch)
{
    Footprint f = { .weights = 0 };
    Facts lives = facts_open(scratch, sizeof(Life));
    count_states(g, &f, scratch);
    count_gradients(g, &lives, &f);
    count_constants(g, &f);
    f.activations = most_alive(g, &lives, footprint_bodies, scratch);
#define ADD(part, sum, words) f.sum += footprint_sum(f.parts[FOOTPRINT_##part]);
    FOOTPRINT_PARTS(ADD)
#undef ADD
    f.total = f.weights + f.optimizer + f.other_state + f.gradients + f.activations;
    return f;
}

static bool is_read_backward(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user->flags & NODE_BACKWARD)
            return true;
    return false;
}

/* Bytes of the parts of a call that are read out of it on the backward side, or by it. */
static uint64_t parts_kept(const Node *n)
{
    uint64_t sum = 0;
    for (int k = 0; k < n->type->n_parts; k++) {
        bool kept = false;
        for (const Use *u = n->uses; u; u = u->next) {
            const Node *part = u->user;
            const bool is_it = part->op == OP_part && ((const PartAttr *)part->attr)->index == k;
            kept = kept || (is_it && (part->flags & NODE_BACKWARD || is_read_backward(part)));
        }
        sum += kept ? bytes_of(n->type->parts[k]) : 0;
    }
    return sum;
}

/* Whether a value is made of states and constants alone: a weight in another form. */
static bool is_of_states(Facts *of_data, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && *(bool *)fact(of_data, in(n, i)))
            return false;
    return !n->n_regions;
}

uint64_t footprint_kept(Graph *g, Arena *scratch)
{
    uint64_t sum = 0;
    Facts of_data = facts_open(scratch, sizeof(bool));
    for (size_t i = 0; i < g->n_inputs; i++)
        *(bool *)fact(&of_data, g->inputs[i]) = g->inputs[i]->op != OP_state;
    for (Node *n = g->first; n; n = n->next) {
        bool *data = fact(&of_data, n);
        *data = *data || !is_of_states(&of_data, n);
        if (!*data || !takes_room(n) || n->flags & (NODE_BACKWARD | NODE_UPDATE))
            continue;
        sum += n->type->kind == TYPE_TUPLE ? parts_kept(n) : is_read_backward(n) ? bytes_of(n->type) : 0;
    }
    return sum;
}
