/* The quantizers of a step: which they are, and what of them is known before there are data. */
#include <math.h>
#include <string.h>

#include "api/session/figures.h"
#include "ir/build.h"
#include "ir/store/blob.h"
#include "ops/quant/integer.h"
#include "ops/quant/observe.h"
#include "passes/engine/pass.h"
#include "passes/quant/placement.h"

enum { OF_CODES = 3 /* an operand of codes with its scale and its code of 0 */ };

/* ---- which they are ---- */

/* Whether a word computes on codes what another computes on numbers. */
static bool computes_on_codes(const Node *n)
{
    const OpTable *ops = n->graph->ir->ops;
    for (size_t i = 0; i < ops->n; i++)
        if (ops->defs[i] && ops->defs[i]->quant.integer == (OpWord)n->op && ops->defs[i]->quant.integer)
            return true;
    return false;
}

static bool gives_codes(const Node *n)
{
    const DType t = n->type->dtype;
    const bool integers = dtype_is_integer(t) && dtype_bits(t) <= 16 && t != BOOL;
    return n->type->kind == TYPE_TENSOR && integers && (op_of(n)->quant.quantizes || computes_on_codes(n));
}

/* Where the scale of the result stands: behind the operands of codes. */
static int scale_of_result(const Node *n)
{
    int i = 0;
    while (i + OF_CODES < n->n_in && in(n, i) && dtype_is_integer(in(n, i)->type->dtype))
        i += OF_CODES;
    return i;
}

static int64_t int_attr(const Node *n, const char *name)
{
    const AttrSpec *a = attr_find(op_of(n)->attrs, str(name));
    if (!a)
        return 0;
    return a->kind == ATTR_BOOL ? *(const bool *)attr_at(a, n->attr) : *(const int64_t *)attr_at(a, n->attr);
}

/* "relu1" of "relu1.codes". */
static const char *value_name(const Node *n, Arena *arena)
{
    static const char codes[] = ".codes";
    const size_t tail = sizeof codes - 1, length = n->name ? strlen(n->name) : 0;
    if (length > tail && strcmp(n->name + length - tail, codes) == 0)
        return arena_copy(arena, n->name, length - tail);
    return n->name;
}

/* The upper bound of the Clip that gives a value, where a step remembers the model: its observers. */
static double clip_of(const Graph *observe, const char *value)
{
    for (const Node *n = observe ? observe->first : NULL; n; n = n->next)
        if (n->name && strcmp(n->name, value) == 0) {
            const double most = quant_clip_from_0(n);
            return isnan(most) ? (double)INFINITY : most;
        }
    return (double)INFINITY;
}

static void add_quantizer(Figures *f, const Graph *observe, Node *n)
{
    const bool alone = op_of(n)->quant.quantizes;
    const int scale = alone ? 1 : scale_of_result(n);
    const char *value = value_name(n, f->arena);
    if (!value || scale >= n->n_in || !in(n, scale))
        return;
    GROW(f->arena, f->list, f->n, f->cap);
    QuantFigure *q = &f->list[f->n++];
    *q = (QuantFigure){ .value = value,
                        .clipped_below = int_attr(n, "relu") != 0,
                        .most = clip_of(observe, value),
                        .call = n,
                        .x = alone ? in(n, 0) : NULL,
                        .scale = in(n, scale),
                        .nil = scale + 1 < n->n_in ? in(n, scale + 1) : NULL };
    code_limits(n->type->dtype, int_attr(n, "least"), int_attr(n, "largest"), &q->least, &q->largest);
    q->occurs = NEWS(f->arena, uint8_t, FIGURE_CODE_BYTES);
}

/* A call of codes tells what they were rounded from, too. */
static Status tell_quotients(QuantFigure *q)
{
    Node *n = (Node *)(uintptr_t)q->call;
    if (q->x)
        return OK;
    Build b = build_before(n);
    Node **ins = NEWS(n->graph->arena, Node *, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        ins[i] = in(n, i);
    Node *told = build_node_n(&b, n->op, n->attr, n->n_in, ins, 2), *codes = build_part(&b, told, 0);
    TRY(b.status);
    stand_in(n, codes);
    q->call = told;
    return OK;
}

/* The codes of all of them are what leaves; nothing else is run. */
static Status keep_only(Figures *f)
{
    Graph *g = f->graph;
    Node **results = NEWS(f->arena, Node *, 2 * f->n + 1);
    int n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const Node *one = f->list[i].call ? f->list[i].call : f->list[i].nil;
        if (one)
            results[n++] = (Node *)(uintptr_t)one;
        results[n++] = (Node *)(uintptr_t)f->list[i].scale;
    }
    graph_return(g, n, results, NULL);
    const Status status = pass_run(pass_find("drop-dead"), g, NULL);
    graph_return(g, 0, NULL, NULL); /* a value is there as long as somebody reads it, and not for all to the end */
    return status;
}

/* Whether nodes depend on some: those that `is` names. */
static void mark(const Graph *g, Map *marked, bool (*is)(const Node *n, const Tensor *value),
                 const Tensor *const *values)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is(g->inputs[i], values ? values[i] : NULL))
            map_put_u64(marked, (uintptr_t)g->inputs[i], NULL);
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (in(n, i) && map_find_u64(marked, (uintptr_t)in(n, i)))
                map_put_u64(marked, (uintptr_t)n, NULL);
}

static bool is_marked(const Map *marked, const Node *n)
{
    return n && map_find_u64(marked, (uintptr_t)n);
}

static bool is_data(const Node *n, const Tensor *value)
{
    (void)value;
    return n->op == OP_input;
}

Status figures_open(Figures *f, const qcc_step *s, Arena *arena)
{
    Map data;
    const Graph *eval = module_graph(s->module, "eval"), *observe = module_graph(s->module, "observe");
    *f = (Figures){ .arena = arena };
    if (!eval)
        return OK;
    f->graph = graph_copy(eval, arena);
    for (Node *n = f->graph->first; n; n = n->next)
        if (gives_codes(n))
            add_quantizer(f, observe, n);
    for (size_t i = 0; i < f->n; i++)
        TRY(tell_quotients(&f->list[i]));
    TRY(keep_only(f));
    map_open(&data, arena);
    mark(f->graph, &data, is_data, NULL);
    for (size_t i = 0; i < f->n; i++)
        f->list[i].weight = f->list[i].x && !is_marked(&data, f->list[i].x);
    return OK;
}

/* ---- without data ---- */

/* Ranges that have seen nothing say nothing, and so do scales that have no first value. */
static bool is_unknown(const Node *n, const Tensor *value)
{
    if (n->op == OP_input || !value)
        return true;
    if (node_role(n).role != STATE_quant || node_role(n).of)
        return false;
    if (n->flags & NODE_TRAINED)
        return isnan(tensor_get_f64(value, 0));
    return tensor_elements(value) > OBSERVED_SEEN && !(tensor_get_f64(value, OBSERVED_SEEN) > 0);
}

/* Of the larger of two scales, the one that is known, where the other is not. */
static Node *known_scale(const Node *scale, const Map *unknown)
{
    Node *one = NULL;
    for (int i = 0; i < scale->n_in; i++)
        if (in(scale, i) && !is_marked(unknown, in(scale, i)))
            one = one ? one : in(scale, i);
    return scale->n_in == 2 && one && one->type == scale->type ? one : NULL;
}

Status figures_without_data(Figures *f, const Tensor *const *values)
{
    Map unknown;
    size_t n = 0;
    map_open(&unknown, f->arena);
    mark(f->graph, &unknown, is_unknown, values);
    for (size_t i = 0; i < f->n; i++) {
        QuantFigure *q = &f->list[i];
        Node *scale = (Node *)(uintptr_t)q->scale, *known = scale;
        if (is_marked(&unknown, scale))
            known = q->weight ? known_scale(scale, &unknown) : NULL;
        if (!known)
            continue;
        if (known != scale)
            node_set_in((Node *)(uintptr_t)q->call, 1, known);
        q->scale = known;
        if (!q->weight)
            q->call = NULL;
        f->list[n++] = *q;
    }
    f->n = n;
    return keep_only(f);
}
/* ---- before a session ---- */

/* The first value of a state; null: it cannot be read, which was said. */
static const Tensor *first_value(const Node *state, Heap *heap, Arena *arena, Diag *d)
{
    void *block;
    Payload *p = ((const StateAttr *)state->attr)->value;
    if (!p)
        return tensor_new(arena, state->type);
    Tensor *t = NEW(arena, Tensor);
    *t = (Tensor){ .type = p->type, .refs = 1 };
    t->data = (void *)(uintptr_t)payload_bytes(p, heap, &block, d);
    return t->data && type_bytes(p->type, &t->bytes) ? t : NULL;
}

static Status read_values(const Graph *g, Heap *heap, Arena *arena, Diag *d, const Tensor **values)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->op != OP_state || !n->uses)
            continue;
        values[i] = first_value(n, heap, arena, d);
        if (!values[i])
            return INVALID;
    }
    return OK;
}

/* Leaves of the observers what depends on no data: first values of scales of weights. */
static Status keep_known(Graph *g, Arena *arena)
{
    Map data;
    int n = 0;
    const int all = graph_n_results(g);
    Node **results = NEWS(arena, Node *, all + 1);
    const char **names = NEWS(arena, const char *, all + 1);
    map_open(&data, arena);
    mark(g, &data, is_data, NULL);
    for (int i = 0; i < all; i++)
        if (graph_result(g, i) && graph_result(g, i)->op != OP_observe && !is_marked(&data, graph_result(g, i))) {
            names[n] = graph_result_name(g, i);
            results[n++] = graph_result(g, i);
        }
    graph_return(g, n, results, names);
    return pass_run(pass_find("drop-dead"), g, NULL);
}

static Status first_scales(const Figures *f, const qcc_step *s, Heap *heap, Arena *arena, const Tensor **values)
{
    const Graph *observe = module_graph(s->module, "observe");
    if (!observe)
        return OK;
    Graph *g = graph_copy(observe, arena);
    TRY(keep_known(g, arena));
    const Tensor **own = NEWS(arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(arena, Tensor *, graph_n_results(g) + 1);
    TRY(read_values(g, heap, arena, &s->cx->diag, own));
    TRY(evaluate(g, NULL, heap, own, results));
    for (int r = 0; r < graph_n_results(g); r++)
        for (size_t i = 0; i < f->graph->n_inputs; i++)
            if (graph_result_name(g, r) && strcmp(f->graph->inputs[i]->name, graph_result_name(g, r)) == 0 &&
                is_unknown(f->graph->inputs[i], values[i]))
                values[i] = results[r];
    return OK;
}

Status figures_first_values(const Figures *f, const qcc_step *s, Heap *heap, Arena *arena, const Tensor ***values)
{
    *values = NEWS(arena, const Tensor *, f->graph->n_inputs + 1);
    TRY(read_values(f->graph, heap, arena, &s->cx->diag, *values));
    return first_scales(f, s, heap, arena, *values);
}
