#include "api/deployed/parity.h"

#include <math.h>
#include <string.h>

#include "api/model/evaluate.h"
#include "base/bytes.h"
#include "frontends/onnx/file/dialect.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"

/* ---- what there is to compare ---- */

static bool is_named(const Node *n)
{
    return n->name && strncmp(n->name, QCC_NAMELESS, strlen(QCC_NAMELESS)) != 0;
}

static bool is_stored(const Node *n)
{
    return n->op == OP_param || n->op == OP_const;
}

static bool are_codes(const Node *n)
{
    const DType t = n->type->dtype;
    return n->type->kind == TYPE_TENSOR &&
           (t == I8 || t == U8 || t == I16 || t == U16 || (dtype_is_code(t) && dtype_is_float(t)));
}

static Map names_of(Graph *g, Arena *arena)
{
    Map names;
    map_open(&names, arena);
    for (Node *n = g->first; n; n = n->next)
        if (is_named(n))
            map_put(&names, n->name, NULL)->value.p = n;
    return names;
}

static const Node *named(const Map *names, const char *name)
{
    const MapEntry *e = map_find(names, name);
    return e ? e->value.cp : NULL;
}

/* The call that gives a value: that of a tuple for its parts. */
static const Node *giver(const Node *n)
{
    return n->op == OP_part ? in(n, 0) : n;
}

/* Codes that are fewer than those of their type leave a file behind a Clip. */
static const Node *behind_cut(const Node *n)
{
    const Node *one = n->uses && !n->uses->next ? n->uses->user : NULL;
    return one && one->op == OP_clip && in(one, 0) == n && are_codes(one) ? one : n;
}

/* What codes were rounded from: the second part of their word, in a graph that tells it. */
static Status tell_quotients(Graph *g)
{
    for (Node *n = g->first; n; n = n->next) {
        const Type *t = n->op == OP_part ? in(n, 0)->type : NULL;
        if (!t || t->n_parts != 2 || !are_codes(n) || t->parts[1]->dtype != F32)
            continue;
        Build b = build_before(n);
        build_part(&b, in(n, 0), 1);
        TRY(b.status);
    }
    return OK;
}

static const Node *quotient_of(const Node *n)
{
    for (const Use *u = n->op == OP_part ? in(n, 0)->uses : NULL; u; u = u->next)
        if (u->user->op == OP_part && u->user != n && u->user->type->kind == TYPE_TENSOR && u->user->type->dtype == F32)
            return u->user;
    return NULL;
}

static ParityNode *add(Parity *p, ParityKind kind, const char *name, const Node *file, const Node *training)
{
    GROW(p->arena, p->list, p->n, p->cap);
    p->list[p->n] = (ParityNode){ .kind = kind,
                                  .name = name,
                                  .op = op_of(giver(file))->name,
                                  .type = file->type->dtype,
                                  .matched = training != NULL,
                                  .training = training,
                                  .file = file };
    return &p->list[p->n++];
}

/* Biases have no name of their own in a file. */
static void add_bias(Parity *p, const Node *file, const Node *training)
{
    const Node *a = giver(file), *b = giver(training);
    for (int i = 0; i < a->n_in && i < b->n_in; i++) {
        const Node *x = in(a, i);
        if (x && in(b, i) && is_stored(x) && !is_named(x) && x->type->kind == TYPE_TENSOR && x->type->dtype == I32)
            add(p, PARITY_STORED, arena_printf(p->arena, "bias of %s", file->name), x, in(b, i));
    }
}

static void add_codes(Parity *p, const Node *n, const Node *training, const Node *literal)
{
    if (training)
        add_bias(p, n, training);
    ParityNode *node = add(p, PARITY_CODES, n->name, behind_cut(n), training);
    node->op = op_of(giver(n))->name;
    node->quotient = quotient_of(n);
    node->literal = literal ? behind_cut(literal) : NULL;
    if (op_of(n)->quant.quantizes && type_elements(in(n, 1)->type) == 1) {
        node->rounded = in(n, 0);
        node->scale = in(n, 1);
        node->rounding = ((const QuantizeAttr *)n->attr)->rounding;
    }
}

static void find(Parity *p)
{
    const Map training = names_of(p->training, p->arena), literal = names_of(p->literal, p->arena);
    for (const Node *n = p->codes->first; n; n = n->next) {
        const Node *other = is_named(n) ? named(&training, n->name) : NULL;
        if (!is_named(n) || n->type->kind != TYPE_TENSOR || (other && other->type->kind != TYPE_TENSOR))
            continue;
        if (other && (other->type->dtype != n->type->dtype || other->op == OP_input))
            other = NULL;
        if (is_stored(n) && other)
            add(p, PARITY_STORED, n->name, n, other);
        else if (!is_stored(n) && are_codes(n))
            add_codes(p, n, other, named(&literal, n->name));
        else if (!is_stored(n) && other && n->type->dtype == F32)
            add(p, PARITY_FLOATS, n->name, n, other);
    }
}

Status parity_open(Parity *p, const qcc_step *s, qcc_model *file, Arena *arena)
{
    *p = (Parity){ .arena = arena, .training = module_graph(s->module, "eval"), .literal = file->graph };
    p->codes = graph_copy(file->graph, arena);
    TRY(model_take_integers(file, p->codes, "train-integers"));
    TRY(tell_quotients(p->codes));
    find(p);
    return OK;
}

/* ---- values ---- */

/* Values of one evaluation that are looked at. */
typedef struct Seen {
    Arena *arena;
    Map wanted; /* node -> its value, a copy */
} Seen;

static void want(Seen *s, const Node *n)
{
    if (n)
        map_put_u64(&s->wanted, (uintptr_t)n, NULL);
}

static void see(void *user, const Node *n, const Tensor *value)
{
    Seen *s = user;
    MapEntry *e = map_find_u64(&s->wanted, (uintptr_t)n);
    if (!e || !value || value->type->kind != TYPE_TENSOR)
        return;
    Tensor *copy = tensor_new(s->arena, value->type);
    if (copy->bytes)
        bytes_copy(copy->data, value->data, copy->bytes);
    e->value.p = copy;
}

static const Tensor *seen(const Seen *s, const Node *n)
{
    const MapEntry *e = n ? map_find_u64(&s->wanted, (uintptr_t)n) : NULL;
    return e ? e->value.cp : NULL;
}

static Status look(Seen *s, Graph *g, const EvalOptions *how, Memory *memory, const Tensor *const *inputs)
{
    Heap heap;
    EvalOptions watched = *how;
    Tensor **results = NEWS(s->arena, Tensor *, graph_n_results(g) + 1);
    watched.observe = see;
    watched.user = s;
    for (size_t i = 0; i < g->n_inputs; i++)
        see(s, g->inputs[i], inputs[i]);
    heap_open(&heap, memory);
    const Status status = evaluate(g, &watched, &heap, inputs, results);
    heap_close(&heap);
    return status;
}

/* ---- comparing ---- */

/* How many elements belong to samples that count. */
static int64_t counted(const Tensor *t, const Batch *batch)
{
    const int64_t all = tensor_elements(t);
    const bool samples = t->type->rank > 0 && batch->rows && t->type->dims[0] == batch->rows;
    return samples ? all / batch->rows * batch->valid : all;
}

static double number(const Tensor *t, int64_t i)
{
    return dtype_is_float(t->type->dtype) ? tensor_get_f64(t, i) : (double)tensor_get_i64(t, i);
}

static void compare(const Tensor *want, const Tensor *got, int64_t n, int64_t *compared, int64_t *differ,
                    double *largest)
{
    *compared += n;
    if (!want || !got || tensor_elements(want) != tensor_elements(got)) {
        *differ += n;
        *largest = INFINITY;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double a = number(want, i), b = number(got, i);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        ++*differ;
        *largest = isfinite(a - b) ? fmax(*largest, fabs(a - b)) : INFINITY;
    }
}

/* Whether a quotient lies where one code ends and the next begins, or within an ulp of that: in the middle between two, or,
 * of what is rounded to one side, at a code; 0 is exact. */
static bool is_tie(float v, bool to_side)
{
    const float end = to_side ? rintf(v) : floorf(v) + 0.5f, ulp = nextafterf(fabsf(v), INFINITY) - fabsf(v);
    return isfinite(v) && v != 0 && fabsf(v) < 0x1p23f && fabsf(v - end) <= ulp;
}

static bool rounds_to_side(int rounding)
{
    return rounding == ROUND_CEIL || rounding == ROUND_FLOOR || rounding == ROUND_ZERO || rounding == ROUND_AWAY;
}

/* The same where codes are floats, which are as far apart as their size says; beyond the largest there are none. */
static bool is_tie_of(DType codes, float v, bool to_side)
{
    if (!dtype_is_float(codes))
        return is_tie(v, to_side);
    return fabsf(v) < float_codes_most(codes) && is_tie(v / float_grid_step(float_grid(codes), v), false);
}

static void count_ties(ParityNode *node, const Seen *s, int64_t n)
{
    double scale = 1;
    const Tensor *quotients = seen(s, node->quotient ? node->quotient : node->rounded);
    const Tensor *of = node->quotient ? NULL : seen(s, node->scale);
    if (of)
        scale = number(of, 0);
    if (!quotients || tensor_elements(quotients) < n || (!node->quotient && !of))
        return;
    for (int64_t i = 0; i < n; i++)
        node->ties += is_tie_of(node->file->type->dtype, (float)number(quotients, i) / (float)scale,
                                rounds_to_side(node->rounding));
}

static void compare_node(ParityNode *node, const Seen *training, const Seen *codes, const Seen *literal,
                         const Batch *batch)
{
    const Tensor *want = seen(training, node->training), *got = seen(codes, node->file);
    const int64_t n = got ? node->kind == PARITY_STORED ? tensor_elements(got) : counted(got, batch) : 1;
    compare(want, got, n, &node->n, &node->differ, &node->largest);
    if (node->kind != PARITY_CODES)
        return;
    count_ties(node, codes, n);
    if (node->literal)
        compare(want, seen(literal, node->literal), n, &node->floats_n, &node->floats_differ, &node->floats_largest);
}

static Status compare_batch(Parity *p, const EvalOptions *how, Memory *memory, const Tensor *const *inputs,
                            const Tensor *const *file, const Batch *batch, Arena *arena)
{
    Seen training = { .arena = arena }, codes = { .arena = arena }, literal = { .arena = arena };
    map_open(&training.wanted, arena);
    map_open(&codes.wanted, arena);
    map_open(&literal.wanted, arena);
    for (size_t i = 0; i < p->n; i++) {
        const ParityNode *node = &p->list[i];
        want(&training, node->training);
        want(&codes, node->file);
        want(&codes, node->quotient);
        want(&codes, node->rounded);
        want(&codes, node->scale);
        want(&literal, node->literal);
    }
    TRY(look(&training, p->training, how, memory, inputs));
    TRY(look(&codes, p->codes, how, memory, file));
    TRY(look(&literal, p->literal, how, memory, file));
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].matched && (!p->begun || p->list[i].kind != PARITY_STORED))
            compare_node(&p->list[i], &training, &codes, &literal, batch);
    p->begun = true;
    return OK;
}

Status parity_batch(Parity *p, const EvalOptions *how, Memory *memory, const Tensor *const *training,
                    const Tensor *const *file, const Batch *batch)
{
    Arena arena;
    arena_open(&arena, memory);
    const Status status = compare_batch(p, how, memory, training, file, batch, &arena);
    arena_close(&arena);
    return status;
}

/* ---- what came of it ---- */

ParitySum parity_sum(const Parity *p, ParityKind kind)
{
    ParitySum s = { 0 };
    for (size_t i = 0; i < p->n; i++) {
        const ParityNode *node = &p->list[i];
        if (node->kind != kind)
            continue;
        s.nodes++;
        s.unmatched += !node->matched;
        s.wrong += node->differ > 0;
        s.n += node->n;
        s.differ += node->differ;
        s.ties += node->ties;
        s.floats_n += node->floats_n;
        s.floats_differ += node->floats_differ;
        s.largest = fmax(s.largest, node->largest);
        s.floats_largest = fmax(s.floats_largest, node->floats_largest);
        if (node->differ && !s.first)
            s.first = node;
    }
    return s;
}

bool parity_holds(const Parity *p)
{
    const ParitySum stored = parity_sum(p, PARITY_STORED), codes = parity_sum(p, PARITY_CODES),
                    floats = parity_sum(p, PARITY_FLOATS);
    const bool seen =
        codes.nodes ? codes.n > 0 : stored.nodes || floats.n; /* weights alone may be codes, which are states */
    return seen && !stored.differ && !codes.differ && !codes.unmatched;
}
