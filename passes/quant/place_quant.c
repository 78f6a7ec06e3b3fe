/* place-quant: quantizes values: a quantize_linear and a dequantize_linear behind each, and a scale for both.
 *
 *     # recipe: --quant w8a8,a=int8:const=0.5,w=int8:tensor:const=0.25
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %y: f32[4,2] = matmul(%x, %w)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         const %0: f32[] = 0.5 ours
 *         %x.codes: i8[4,8] = quantize_linear(%x, %0, output_dtype=i8) ours
 *         %1: f32[4,8] = dequantize_linear(%x.codes, %0) ours
 *         const %2: f32[] = 0.25 ours
 *         %w.codes: i8[8,2] = quantize_linear(%w, %2, output_dtype=i8, least=-127, largest=127, mask=pass) ours
 *         %3: f32[8,2] = dequantize_linear(%w.codes, %2) ours
 *         %y: f32[4,2] = matmul(%1, %3)
 *     }
 *
 * What is quantized is decided first (demand.c): data and weights of products, and what joins in between.  The scale of
 * data comes from a state that remembers its range; the next range leaves the graph as a result of that state's name. */
#include <math.h>
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/path.h"
#include "ops/card/words.h"
#include "passes/quant/record.h"
#include "passes/quant/says.h"
#include "passes/quant/scales.h"

typedef struct Placing {
    Placement *p;
    QuantScales scales;
    Map paths;
    Map names; /* of nodes that are there, and of codes that are placed */
    size_t n_nameless;
} Placing;

/* ---- readers ---- */

/* Readers of a value but those placed here, which read its number from now on; what leaves the graph stays as it is. */
static void redirect(Node *value, Node *number, size_t n_before)
{
    for (Use *u = value->uses, *next; u; u = next) {
        Node *reader = u->user;
        next = u->next;
        if (reader->id >= n_before || node_is_return(reader))
            continue;
        for (int i = 0; i < reader->n_in; i++)
            if (in(reader, i) == value)
                node_set_in(reader, i, number);
        next = value->uses; /* the list has changed */
    }
}

static const char *name_behind(Graph *g, const char *name, const char *what)
{
    const char *text = arena_printf(g->arena, "%s%s", name, what);
    return name_of(&g->ir->names, text, strlen(text));
}

static void note_names(Placing *s)
{
    const Graph *g = s->p->g;
    map_open(&s->names, s->p->run->scratch);
    for (size_t i = 0; i < g->n_inputs; i++)
        map_put(&s->names, g->inputs[i]->name, NULL);
    for (const Node *n = g->first; n; n = n->next)
        if (n->name)
            map_put(&s->names, n->name, NULL);
}

/* What is placed for a value is called after it; where there are two quantizers of one weight the other one has a number. */
static const char *free_name(Placing *s, const char *base)
{
    static const char *const endings[] = { ".codes", ".scale", ".zero" };
    Arena *arena = s->p->g->arena;
    for (int k = 1;; k++) {
        const char *name = k > 1 ? arena_printf(arena, "%s.%d", base, k) : base;
        bool taken = false;
        for (size_t i = 0; i < COUNT(endings); i++)
            taken |= map_find(&s->names, arena_printf(s->p->run->scratch, "%s%s", name, endings[i])) != NULL;
        if (taken)
            continue;
        map_put(&s->names, arena_printf(s->p->run->scratch, "%s%s", name, endings[0]), NULL);
        return name;
    }
}

static const char *name_of_value(Placing *s, const Node *value)
{
    return free_name(s, value->name ? value->name : arena_printf(s->p->g->arena, "value.%zu", s->n_nameless++));
}

/* What was placed for a value is called after it, in files too. */
static void name_nodes(Graph *g, const char *name, const QuantValueMark *v)
{
    if (!v->codes->name)
        v->codes->name = name_behind(g, name, ".codes");
    if (!v->shares && v->scale->op != OP_const && !v->scale->name)
        v->scale->name = name_behind(g, name, ".scale");
    if (!v->shares && op_of(v->scale)->quant.dequantizes && !in(v->scale, 0)->name)
        in(v->scale, 0)->name = name_behind(g, name, ".scale.codes");
    if (!v->shares && v->zero && !v->zero->name)
        v->zero->name = name_behind(g, name, ".zero");
}

/* ---- data ---- */

static Build behind(Node *value)
{
    Graph *g = value->graph;
    Build b = build_at_end(g);
    b.before = node_is_input(value) || value->op == OP_state ? g->first : value->next;
    b.flags = NODE_OURS;
    b.src = value->src;
    b.label = value->label;
    return b;
}

static Status place_value(Placing *s, Node *value)
{
    QuantValueMark *v = quant_value(s->p, value);
    const size_t n_before = s->p->g->n_ids;
    QuantNodes q = { .by = v->by,
                     .grain = quant_whole,
                     .never_negative = quant_never_negative(value),
                     .most = quant_most(value),
                     .floor = v->asked && quant_call(s->p, v->asked)->ternary ? QUANT_TERNARY_FLOOR : 0,
                     .within = v->within,
                     .stays = !quant_learns(&s->scales, value),
                     .name = name_of_value(s, value) };
    if (quant_goes_by_rows(v->by))
        q.grain = quant_grain_of_rows(v->by, v->axis, value->type);
    if (v->shares) {
        const QuantValueMark *from = quant_value(s->p, v->shares);
        q.by = from->by;
        q.never_negative = quant_never_negative(v->shares);
        q.scale = from->scale;
        q.zero = from->zero;
    } else {
        TRY(quant_scale_of_data(&s->scales, &q, value));
    }
    if (s->p->recipe->weights_alone) /* its range is seen, and the value stays what it is */
        return OK;
    Build b = behind(value);
    while (b.before && (b.before == q.scale || b.before->id >= n_before)) /* behind what its scale is made of */
        b.before = b.before->next;
    v->scale = q.scale;
    v->zero = q.zero;
    v->codes = quant_codes(&b, &q, value);
    v->number = v->codes ? quant_number(&b, &q, v->codes) : NULL;
    TRY(b.status);
    redirect(value, v->number, n_before);
    name_nodes(s->p->g, q.name, v);
    v->state = q.state;
    v->stays = q.stays && quantizer_is_learned(q.by);
    quant_record_value(s->p, value);
    s->p->n_placed++;
    s->p->run->changes++;
    return OK;
}

/* ---- weights ---- */

/* The number of a weight that is quantized so already. */
static bool is_placed(Placing *s, const Node *weight, const Quantizer *by, int axis)
{
    const QuantValueMark *v = quant_value(s->p, weight);
    return v->number && quantizer_same(v->by, by) && v->axis == axis;
}

/* |bias| / (data scale * 2^30): no scale below that keeps the codes of the bias within half of 32 bits, which leaves the other
 * half to the sum that it is added to (demand.c). */
static Node *least_scale(Build *b, const QuantTarget *t, Node *bias, Node *data_scale, int axis)
{
    Node *size = CALL(b, abs, bias);
    if (axis == QUANT_WHOLE)
        size = make_reduce_all(b, OP_reduce_max, size);
    return CALL(b, div, size, CALL(b, mul, data_scale, build_scalar(b, F32, target_most_sum(t))));
}

static Status place_weight(Placing *s, Node *call, int i, const Quantizer *by, Node *bias, Node *data_scale)
{
    Node *weight = in(call, i);
    QuantNodes q = { .by = by, .grain = quant_whole, .stored = true, .most = (double)INFINITY };
    q.stays = !quant_learns(&s->scales, weight);
    QuantValueMark *v = quant_value(s->p, weight);
    const int channels = quant_weight_axis(call, i);
    if (is_placed(s, weight, by, channels)) {
        quant_record_product(s->p, call, i, quant_weight_of(weight), by);
        node_set_in(call, i, v->number);
        return OK;
    }
    q.name = v->called ? free_name(s, v->called) : name_of_value(s, quant_weight_of(weight));
    Build b = build_before(call);
    b.flags |= NODE_OURS;
    TRY(quant_grain_of_weight(s->p, by, call, i, &q.grain));
    TRY(quant_scale_of_weight(&s->scales, &q, &b, weight));
    if (bias && data_scale)
        q.scale =
            CALL(&b, max, q.scale, least_scale(&b, quantization_target(s->p->recipe), bias, data_scale, q.grain.axis));
    *v = (QuantValueMark){
        .by = by, .asked = call, .axis = channels, .scale = q.scale, .zero = q.zero, .called = v->called
    };
    if (!q.end && type_known(weight->type))
        s->scales.budget.said += (double)type_elements(weight->type) * by->bits / 8;
    v->codes = b.status == OK ? quant_codes(&b, &q, weight) : NULL;
    v->number = v->codes ? quant_number(&b, &q, v->codes) : NULL;
    TRY(b.status);
    v->scale = q.told ? q.told : q.scale;
    v->state = q.state;
    v->stays = q.stays && quantizer_is_learned(by);
    name_nodes(s->p->g, q.name, v);
    quant_record_value(s->p, weight);
    quant_record_product(s->p, call, i, quant_weight_of(weight), by);
    node_set_in(call, i, v->number);
    s->p->n_placed++;
    s->p->run->changes++;
    return OK;
}

/* A weight that is stored is placed by another pass, behind gradients (passes/lowbit): here its state is told. */
static Status store_weight(Placing *s, Node *call, int i, const Quantizer *by)
{
    bool first;
    Node *weight = in(call, i);
    TRY(quant_store(s->p, by, call, i, &first));
    if (!first)
        return OK;
    *quant_value(s->p, weight) = (QuantValueMark){ .by = by, .asked = call, .axis = quant_weight_axis(call, i) };
    quant_record_value(s->p, weight);
    s->p->n_placed++;
    s->p->run->changes++;
    return OK;
}

/* The scale of operand i, when it is quantized; null otherwise. */
static Node *scale_of_operand(const Node *call, int i)
{
    Node *number = in(call, i);
    return number && op_of(number)->quant.dequantizes ? in(number, 1) : NULL;
}

/* An addend that is a parameter, a number a channel. */
static Node *bias_of(const Node *call)
{
    for (int i = 2; i < call->n_in; i++)
        if (quant_role(&op_of(call)->quant, i) == QUANT_BIAS && in(call, i) && quant_weight_of(in(call, i)))
            return in(call, i);
    return NULL;
}

static Status place_call(Placing *s, Node *call)
{
    const QuantCallMark *c = quant_call(s->p, call);
    const bool integer_bias =
        c->spec->of[OPERAND_B].on && c->weight && c->data && !c->floats && op_of(call)->quant.integer;
    Node *bias = bias_of(call), *of_data = NULL, *of_weight = NULL;
    for (int i = 0; i < 2 && integer_bias; i++)
        if (!quant_weight_of(in(call, i)))
            of_data = scale_of_operand(call, i);
    for (int i = 0; i < call->n_in; i++)
        if (quant_is_weight(call, i) && quantizer_is_stored(c->weight)) {
            TRY(store_weight(s, call, i, c->weight));
        } else if (c->weight && quant_is_weight(call, i)) {
            TRY(place_weight(s, call, i, c->weight, integer_bias ? bias : NULL, of_data));
            of_weight = scale_of_operand(call, i);
        }
    if (!integer_bias || !bias || !of_data || !of_weight)
        return OK;
    Build b = build_before(call);
    b.flags |= NODE_OURS;
    Node *number = quant_bias(&b, bias, of_data, of_weight);
    TRY(b.status);
    for (int i = 2; i < call->n_in; i++)
        if (in(call, i) == bias)
            node_set_in(call, i, number);
    s->p->run->changes++;
    return OK;
}

/* ---- the graph ---- */

static Status place_all(Placing *s)
{
    Graph *g = s->p->g;
    Node **list = NEWS(s->p->run->scratch, Node *, graph_count(g) + g->n_inputs + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        list[n++] = g->inputs[i];
    for (Node *k = g->first; k; k = k->next)
        list[n++] = k;
    for (size_t i = 0; i < n; i++)
        if (quant_value(s->p, list[i])->by)
            TRY(place_value(s, list[i]));
    for (size_t i = 0; i < n; i++)
        if (quant_call(s->p, list[i])->core)
            TRY(place_call(s, list[i]));
    for (size_t i = 0; i < n; i++)
        quant_record_call(s->p, list[i]);
    TRY(quant_budget(&s->scales));
    results_set(&s->scales.results);
    return OK;
}

/* What nothing here does is refused before anything is placed. */
static Status refuse(PassRun *run, const char *what, const char *instead)
{
    Place place = NOWHERE;
    place.where = "--quant";
    Message *m = message_new(run->diag, SEVERITY_ERROR, UNSUPPORTED, place, "%s", what);
    message_try(m, "%s", instead);
    return message_send(m);
}

/* A model whose file has quantizers is trained through them: others around them would make codes of codes. */
static Status check_model(Graph *g, PassRun *run)
{
    for (Node *n = g->first; n; n = n->next)
        if (op_of(n)->quant.dequantizes && !(n->flags & NODE_OURS))
            return refuse(run, arena_printf(run->scratch, "the model is quantized already (%s)", node_place(n).where),
                          "the same without --quant: it is trained through its own quantizers");
    return OK;
}

static Status check_spec(PassRun *run, const Quantization *q)
{
    const QuantSpec *s = q->spec;
    if (s->weights_first && !s->of[OPERAND_W].on)
        return refuse(run, "phase=weights-first, and weights are not quantized", "w8a8, or the same without phase=");
    if (s->weights_first && !s->of[OPERAND_A].on)
        return refuse(run, "phase=weights-first, and data are never quantized", "the same without phase=");
    if (s->of[OPERAND_B].on && s->of[OPERAND_B].bits != 32)
        return refuse(run, "biases are integers of 32 bits, or floats", "b=int32, or b=off");
    return OK;
}

static Status place_quant(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    if (!recipe || !recipe->quantization.spec)
        return OK;
    TRY(check_spec(run, &recipe->quantization));
    TRY(check_model(g, run));
    Placement p = { .g = g,
                    .run = run,
                    .recipe = &recipe->quantization,
                    .values = facts_open(run->scratch, sizeof(QuantValueMark)),
                    .calls = facts_open(run->scratch, sizeof(QuantCallMark)),
                    .data = facts_open(run->scratch, sizeof(bool)) };
    TRY(quant_says(&p));
    TRY(quant_open_recurrent(&p));
    Placing s = { .p = &p, .scales = { .p = &p, .results = results_of(g, run->scratch) } };
    note_names(&s);
    TRY(quant_find(&p));
    quant_find_learners(&s.scales);
    return place_all(&s);
}

const Pass pass_place_quant = { .name = "place-quant", .needs = TYPED, .may = MEANING, .run = place_quant };
