/* choose-trainable: each parameter of the model becomes state that is trained, running statistics, or a constant.
 *
 *     graph @f(%x: f32[2,3]) -> (%z) {
 *         param %mean: f32[3] = [0.5, 0.25, 0.125] !1
 *         param %w: f32[3,2] = kaiming(seed=1)
 *         param %b: f32[2]= zeros
 *         %c: f32[2,3] = sub(%x, %mean) !2
 *         %y: f32[2,2] = matmul(%c, %w) !3
 *         %z: f32[2,2] = add(%y, %b) !4
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], state %w: f32[3,2] = kaiming(seed=1) trained, state %b: f32[2] = zeros trained) -> (%z) {
 *         const %mean: f32[3] = [0.5, 0.25, 0.125] !1
 *         %c: f32[2,3] = sub(%x, %mean) !2
 *         %y: f32[2,2] = matmul(%c, %w) !3
 *         %z: f32[2,2] = add(%y, %b) !4
 *     }
 *
 * What is trained is what cards call a parameter and data meets, seen through what only moves it and through what is
 * computed from constants.  Not, unless it is named: integers; constants that normalize the input, meet only what comes
 * from integers (rotary frequencies, grids), are masks, tables of cosines and sines, or keep something off zero; numbers
 * in Constant nodes.  A table of a Gather and a weight of a MatMul or Gemm that are equal are one state.  Every choice
 * is a remark, and a row of Recipe.choices. */
#include <string.h>

#include "ir/role.h"
#include "ops/card/path.h"
#include "ops/card/words.h"
#include "passes/clean/constant_values.h"
#include "passes/model/candidates.h"
#include "passes/recipe/selector.h"

/* ---- the candidates ---- */

static bool is_float(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

/* Payloads that initializers state: an Identity of one is a parameter of its own, but no Constant. */
static Map initializer_payloads(Choosing *c)
{
    Map payloads;
    map_open(&payloads, c->scratch);
    for (Node *n = walk_first(c->graph); n; n = walk_next(c->graph, n))
        if (n->op == OP_param && !n->src)
            map_put_u64(&payloads, (uintptr_t)node_payload(n), NULL);
    return payloads;
}

static void find_candidates(Choosing *c)
{
    const Map initializers = initializer_payloads(c);
    Origins origins = origins_of(c->graph, c->scratch);
    Facts uses = weight_uses(c->graph, c->scratch, &origins);
    for (Node *n = walk_first(c->graph); n; n = walk_next(c->graph, n)) {
        Payload *p = node_payload(n);
        if (n->op != OP_param || !p)
            continue;
        GROW(c->scratch, c->list, c->n, c->cap);
        Candidate *k = &c->list[c->n++];
        *k = (Candidate){ .node = n, .use = *(WeightUse *)fact(&uses, n) };
        c->evidence |= (n->flags & NODE_SAID) != 0;
        k->stated = n->src && !map_find_u64(&initializers, (uintptr_t)p);
        k->choice = (Choice){ .name = n->name ? n->name : "",
                              .file = n->name ? name_in_file(n) : "",
                              .path = n->name ? path_name(&c->paths, n) : "",
                              .type = n->type,
                              .payload = p,
                              .src = n->src };
    }
}

void choose(Candidate *k, ChoiceKind kind, const char *reason)
{
    k->choice.kind = kind;
    k->choice.reason = reason;
}

/* ---- the rules ---- */

/* The name is none that a module gave: made up, or that of a Constant node. */
static bool is_nameless(const char *name)
{
    return name_is_made_up(name) || name_is_computed(name) || strstr(name, "Constant");
}

/* Values that nobody learned, whatever reads them. */
static const char *is_made(const Node *n)
{
    static const struct {
        bool (*holds)(const Node *n);
        const char *reason;
    } kinds[] = {
        { is_counting, "counts: positions" },
        { is_additive_mask, "an additive mask: 0 or below -50" },
        { is_whole_numbers, "whole numbers: a mask, grid or table" },
        { is_identity_matrix, "an identity matrix" },
        { is_sinusoidal, "sines and cosines of positions" },
        { is_antisymmetric, "coordinates around a middle" },
    };
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].holds(n))
            return kinds[i].reason;
    return NULL;
}

/* Zeros along the last axis, which modules have of rank 1 where they learn them. */
static bool is_zero_row(const Node *n)
{
    const Type *t = n->type;
    return t->rank > 1 && t->dims[t->rank - 1] != 1 && is_zeros(n);
}

/* Why what is met element by element is no parameter; null: it may be one. */
static const char *scale_objection(const Candidate *k)
{
    const Node *n = k->node;
    const WeightUse *use = &k->use;
    const bool one = type_elements(n->type) == 1;
    if (one && is_nameless(k->choice.name))
        return "a number that no module named";
    if (name_is_computed(k->choice.name))
        return "a value that the exporter computed";
    if (is_progression(n))
        return "numbers at equal distances: a grid";
    if (use->added)
        return is_zero_row(n) && !name_is_made_up(k->choice.name)
                   ? "all zeros: a mask, or an offset that nothing trained"
                   : NULL;
    if (one && use->divides && !use->computed)
        return "a number that data are divided by";
    if (one && use->multiplied && !use->computed)
        return "a number that data are multiplied with";
    return long_axes(n->type) > 1 && !use->computed ? "a table that data are multiplied with" : NULL;
}

/* Why a parameter that is used as a weight is none all the same; null: it is one. */
static const char *values_object(const Choosing *c, const Candidate *k)
{
    const Node *n = k->node, *norm = k->use.reader[USE_WEIGHT];
    if (k->stated && type_elements(n->type) == 1)
        return "a number in a Constant node";
    if (k->stated && is_nameless(k->choice.name) && is_one_value(n))
        return "one repeated value in a Constant node";
    if (norm && op_of(norm)->filled && is_nameless(k->choice.name) && is_one_value(n))
        return arena_printf(c->graph->arena, "one repeated value of an %s without parameters",
                            op_title(c->scratch, norm));
    if (n->type->rank == 0 && is_nameless(k->choice.name))
        return "a number that no module named";
    const char *made = norm && !is_symmetric(norm) ? NULL : is_made(n);
    if (made || norm)
        return made;
    for (size_t i = 0; k->use.multiplied && i < c->n; i++)
        if (c->list[i].use.multiplied && are_cosines_and_sines(n, c->list[i].node))
            return "cosines and sines of positions";
    return scale_objection(k);
}

static void choose_by_use(const Choosing *c, Candidate *k)
{
    static const UseKind rest[] = { USE_NORMALIZATION, USE_POSITIONS, USE_GUARD, USE_OPERAND };
    const WeightUse *use = &k->use;
    const UseKind as = use->reader[USE_WEIGHT] ? USE_WEIGHT : USE_SCALE;
    if (use->reader[as]) {
        const char *objection = values_object(c, k);
        choose(k, objection ? CHOICE_CONSTANT : CHOICE_TRAINED,
               objection ? objection : use_reason(c->graph->arena, use, as));
        return;
    }
    for (size_t i = 0; i < COUNT(rest); i++)
        if (use->reader[rest[i]]) {
            choose(k, CHOICE_CONSTANT, use_reason(c->graph->arena, use, rest[i]));
            return;
        }
    choose(k, CHOICE_CONSTANT, "nothing reads it");
}

static bool is_statistic(const WeightUse *use)
{
    return use->reader[USE_STATISTIC] != NULL;
}

/* Statistics of one BatchNormalization are state; where several share them, or somebody else reads them, nobody could
 * say what comes next. */
static void choose_statistic(const Choosing *c, Candidate *k)
{
    bool alone = k->use.n_statistics == 1;
    for (int i = 0; i < USE_KINDS; i++)
        alone = alone && (i == USE_STATISTIC || !k->use.reader[i]);
    const char *reason = use_reason(c->graph->arena, &k->use, USE_STATISTIC);
    choose(k, alone ? CHOICE_STATISTIC : CHOICE_CONSTANT,
           alone ? reason : arena_printf(c->graph->arena, "%s and of others, which stay frozen", reason));
}

static bool has_gradient(const Node *n)
{
    return is_float(n) && dtype_bits(n->type->dtype) >= 16;
}

static bool is_read(const WeightUse *use)
{
    for (int i = 0; i < USE_KINDS; i++)
        if (use->reader[i])
            return true;
    return false;
}

/* What the exporter says is stronger than what readers and values look like. */
static void choose_as_said(const Choosing *c, Candidate *k)
{
    const WeightUse *use = &k->use;
    const UseKind as = use->reader[USE_WEIGHT] ? USE_WEIGHT : USE_SCALE;
    Arena *arena = c->graph->arena;
    if (!is_read(use))
        choose(k, CHOICE_CONSTANT, "nothing reads it");
    else if (k->node->flags & NODE_PARAMETER)
        choose(k, CHOICE_TRAINED,
               use->reader[as]
                   ? arena_printf(arena, "a parameter by the exporter's signature; %s", use_reason(arena, use, as))
                   : "a parameter by the exporter's signature");
    else
        choose(k, CHOICE_CONSTANT,
               k->node->label ? "a buffer by the exporter's signature"
                              : "neither parameter nor buffer in the exporter's signature");
}

static void choose_by_rules(const Choosing *c, Candidate *k)
{
    if (!has_gradient(k->node))
        choose(k, CHOICE_CONSTANT,
               arena_printf(c->graph->arena, "%s is not trained", type_text(c->graph->arena, k->node->type)));
    else if (is_statistic(&k->use) && !(k->node->flags & NODE_PARAMETER))
        choose_statistic(c, k);
    else if (k->node->flags & NODE_SAID)
        choose_as_said(c, k);
    else
        choose_by_use(c, k);
    if (k->choice.kind != CHOICE_CONSTANT && (k->node->graph != c->graph || !k->node->name))
        choose(k, CHOICE_CONSTANT, k->node->name ? "stated inside the body of a node" : "has no name");
}

/* ---- what the user says ---- */

static bool is_scale_of_codes(const Candidate *k)
{
    const Node *reader = k->use.reader[USE_OPERAND];
    return reader && (op_of(reader)->quant.quantizes || op_of(reader)->quant.dequantizes);
}

/* Hears each candidate that a selector takes; one that takes none is an error. */
static Status select_each(Choosing *c, const char *option, const char *text,
                          void (*hear)(Choosing *c, Candidate *k, const char *option, const char *text))
{
    Selector s;
    size_t taken = 0;
    TRY(selector_open(&s, c->graph, c->scratch, &c->paths, option, text));
    for (size_t i = 0; i < c->n; i++)
        if (selector_takes_parameter(&s, c->list[i].node)) {
            hear(c, &c->list[i], option, text);
            taken++;
        }
    selector_close(&s);
    if (!taken)
        return selector_missed(&s, c->graph, true);
    remark(c->run->diag, "select", NOWHERE, "%s '%s' matches %zu", option, text, taken);
    return OK;
}

static void hear_train(Choosing *c, Candidate *k, const char *option, const char *text)
{
    if (!has_gradient(k->node) || k->choice.kind == CHOICE_STATISTIC || !k->node->name || k->node->graph != c->graph)
        return;
    if (is_scale_of_codes(k)) { /* biases are in units of it: they would stand for other numbers */
        choose(k, CHOICE_CONSTANT, "a scale of quantizers stays what it is");
        return;
    }
    k->selected = true;
    choose(k, CHOICE_TRAINED, arena_printf(c->graph->arena, "%s '%s'", option, text));
}

static void hear_freeze(Choosing *c, Candidate *k, const char *option, const char *text)
{
    if (k->choice.kind == CHOICE_TRAINED)
        choose(k, CHOICE_CONSTANT, arena_printf(c->graph->arena, "%s '%s'", option, text));
}

static Status choose_by_selectors(Choosing *c)
{
    for (size_t i = 0; i < c->recipe->n_train; i++)
        TRY(select_each(c, "--train", c->recipe->train[i], hear_train));
    for (size_t i = 0; c->recipe->n_train && i < c->n; i++)
        if (c->list[i].choice.kind == CHOICE_TRAINED && !c->list[i].selected)
            choose(&c->list[i], CHOICE_CONSTANT, "not named by --train");
    for (size_t i = 0; i < c->recipe->n_freeze; i++)
        TRY(select_each(c, "--freeze", c->recipe->freeze[i], hear_freeze));
    return OK;
}

/* ---- the graph ---- */

/* The older exporter transposes the weight of a Linear and makes up a name, where it folds constants. */
static bool is_turned(const Choosing *c, const Candidate *k)
{
    const Node *reader = k->use.reader[USE_WEIGHT];
    return !c->evidence && reader && is_symmetric(reader) && k->node->type->rank == 2 &&
           strncmp(k->choice.name, "onnx::MatMul_", 13) == 0;
}

static Node *become_state(Choosing *c, Candidate *k)
{
    Node *n = k->node;
    const char *name = n->name;
    n->name = NULL;
    const RoleMark mark = { k->choice.kind == CHOICE_STATISTIC ? STATE_statistic : STATE_weight, NULL };
    Node *state = graph_state(c->graph, name, n->type, &(StateAttr){ node_payload(n), mark });
    state->flags = n->flags & (uint16_t) ~(NODE_PARAMETER | NODE_FIXED);
    state->src = n->src;
    state->label = n->label && !n->src && strcmp(n->label, name) == 0 ? NULL : n->label;
    if (k->choice.kind == CHOICE_TRAINED)
        state->flags |= NODE_TRAINED;
    if (is_turned(c, k))
        state->flags |= NODE_TURNED;
    graph_replace(n, state);
    node_remove(n);
    return state;
}

static void become_constant(Node *n)
{
    n->op = OP_const;
    n->flags &= (uint16_t)~NODE_SAID;
    if (!n->src)
        n->label = NULL;
}

static Status stand_for(Choosing *c, const Candidate *k, Node *state)
{
    Build b = build_at_end(c->graph);
    Node *twin = state;
    b.before = c->graph->first;
    b.flags = NODE_OURS;
    if (k->choice.transposed)
        twin = CALL(&b, transpose, state);
    TRY(b.status);
    k->node->name = NULL;
    graph_replace(k->node, twin);
    node_remove(k->node);
    return OK;
}

static Status apply(Choosing *c)
{
    Map states;
    map_open(&states, c->scratch);
    for (size_t i = 0; i < c->n; i++) {
        Candidate *k = &c->list[i];
        const Node *was = k->node;
        if (k->choice.kind == CHOICE_CONSTANT)
            become_constant(k->node);
        else if (k->choice.kind != CHOICE_TIED)
            map_put_u64(&states, (uintptr_t)was, NULL)->value.p = become_state(c, k);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].choice.kind == CHOICE_TIED)
            TRY(stand_for(c, &c->list[i], map_find_u64(&states, (uintptr_t)c->list[i].tied_to)->value.p));
    return OK;
}

static void tell(const Choosing *c)
{
    static const char *const words[] = { [CHOICE_TRAINED] = "trained",
                                         [CHOICE_STATISTIC] = "state",
                                         [CHOICE_TIED] = "tied",
                                         [CHOICE_CONSTANT] = "constant" };
    for (size_t i = 0; i < c->n; i++) {
        const Choice *choice = &c->list[i].choice;
        if (*choice->name)
            remark(c->run->diag, "trainable", NOWHERE, "%s is %s: %s", choice->path, words[choice->kind],
                   choice->reason);
    }
}

static void keep(const Choosing *c)
{
    Choices *out = c->recipe->choices;
    for (size_t i = 0; out && i < c->n; i++) {
        if (!*c->list[i].choice.name)
            continue;
        GROW(c->graph->arena, out->list, out->n, out->cap);
        out->list[out->n++] = c->list[i].choice;
    }
}

static Status choose_trainable(Graph *g, PassRun *run)
{
    static const Recipe defaults = { 0 };
    Choosing c = { .graph = g, .run = run, .scratch = run->scratch };
    c.recipe = run->options->recipe ? run->options->recipe : &defaults;
    c.paths = path_names(g, g->arena);
    find_candidates(&c);
    for (size_t i = 0; i < c.n; i++)
        choose_by_rules(&c, &c.list[i]);
    TRY(choose_by_selectors(&c));
    TRY(find_ties(&c));
    TRY(tell_computed(&c));
    tell(&c);
    keep(&c);
    run->changes += (int64_t)c.n;
    return apply(&c);
}

const Pass pass_choose_trainable = {
    .name = "choose-trainable", .needs = TYPED, .makes = CHOSEN, .may = EXACT, .run = choose_trainable
};
