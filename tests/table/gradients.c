/* label: slow */
/* Every card that promises a gradient: on its samples, turned to f64, the adjoint against central differences; and
 * every operand that ONNX's schema marks as differentiable has one.
 *
 * In f32 the gradients are those of f64 but for rounding.  Where no extent is known they are the same, or refused.
 *
 * Values are moved off a grid of 1/64 first, where the kinks, ties and limits of samples lie. */
#include <math.h>
#include <stdlib.h>

#include "ops/card/schema.h"
#include "ops/control/reverse.h"
#include "support/cards_hold.h"

enum { MOST_OPERANDS = 32, MOST_ELEMENTS = 10, MOST_SAMPLES = 48 };
#define TOLERANCE_F32 2e-4 /* of the largest element */

/* What was checked of one card. */
typedef struct Tally {
    int samples, elements;
    int of_operand[MOST_OPERANDS];
    int missing;       /* operands without an adjoint */
    int open, refused; /* with extents that only the run tells: right, and refused */
} Tally;

/* Which extents only the run tells. */
typedef enum Open { OPEN_NONE, OPEN_ALL, OPEN_FIRST, OPEN_LAST, OPENS } Open;

/* One sample in f64: its float operands are inputs of a graph. */
typedef struct Trial {
    Context *c;
    const Sample *sample;
    const Type *(*in)(Types *types, const Type *t); /* f64, f32 or the sample's own types */
    Graph *forward, *backward;
    int n;                      /* inputs */
    int operand[MOST_OPERANDS]; /* of the call */
    Tensor *x[MOST_OPERANDS];
    bool smooth[MOST_OPERANDS];
    int n_y;
    double *weight; /* of every element of every result */
    size_t n_weight;
    Tensor **dx;
    Open open; /* which extents of an input are not known */
} Trial;

/* ---- the sample in f64 ---- */

static bool is_float(const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype);
}

static const Type *as_f64(Types *types, const Type *t)
{
    return is_float(t) ? type_with_dtype(types, t, F64) : t;
}

static const Type *as_f32(Types *types, const Type *t)
{
    return is_float(t) ? type_with_dtype(types, t, F32) : t;
}

static const Type *as_it_is(Types *types, const Type *t)
{
    (void)types;
    return t;
}

/* The same with all extents, the first or the last one unknown. */
static const Type *opened(Types *types, const Type *t, Open open)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        const bool hidden = open == OPEN_ALL || (open == OPEN_FIRST ? i == 0 : i == t->rank - 1);
        dims[i] = hidden ? DIM_UNKNOWN : t->dims[i];
    }
    return type_tensor(types, t->dtype, t->rank, dims);
}

/* Off the grid, a little differently for each element, so that nothing ties. */
static double off_grid(double v, int64_t i)
{
    enum { GRID = 64 };
    if (!isfinite(v) || fabs(v) > 1e4)
        v = 0.3 + 0.01 * (double)(i % 17);
    const double jitter = 0.12 + 0.76 * fmod(0.6180339887498949 * (double)(i + 1), 1);
    return (floor(v * GRID * 0.999) + jitter) / GRID;
}

static Tensor *moved(const Trial *t, const Tensor *v, int operand)
{
    Tensor *x = tensor_new(&t->c->arena, t->in(&t->c->ir.types, v->type));
    for (int64_t i = 0; i < tensor_elements(v); i++)
        tensor_set_f64(x, i, off_grid(tensor_get_f64(v, i), i + 7 * operand));
    return x;
}

static bool is_smooth(const OpDef *d, int operand)
{
    return d->differentiable >> (operand < 31 ? operand : 31) & 1;
}

/* The call on inputs where operands are smooth floats, on constants where not. */
static Node *rebuild(Trial *t, Graph *g)
{
    const Node *call = t->sample->call;
    Build b = build_at_end(g);
    Node **ins = NEWS(&t->c->arena, Node *, call->n_in + 1);
    t->n = 0;
    for (int i = 0; i < call->n_in; i++) {
        const Tensor *v = in(call, i) ? node_constant(in(call, i), 0) : NULL;
        if (!in(call, i))
            continue;
        if (!v || v->type->kind != TYPE_TENSOR)
            return NULL;
        if (!dtype_is_float(v->type->dtype)) {
            ins[i] = build_const(&b, v);
            continue;
        }
        if (!is_smooth(t->sample->def, i)) {
            Tensor *wide = tensor_new(&t->c->arena, t->in(&t->c->ir.types, v->type));
            for (int64_t k = 0; k < tensor_elements(v); k++)
                tensor_set_f64(wide, k, tensor_get_f64(v, k));
            ins[i] = build_const(&b, wide);
            continue;
        }
        if (t->n == MOST_OPERANDS)
            return NULL;
        t->operand[t->n] = i;
        t->x[t->n] = moved(t, v, i);
        ins[i] = graph_input(g, NULL, t->open ? opened(&t->c->ir.types, t->x[t->n]->type, t->open) : t->x[t->n]->type);
        t->n++;
    }
    Node *y = build_node_n(&b, call->op, call->attr, call->n_in, ins, type_results(call->type));
    return b.status == OK ? y : NULL;
}

static bool is_f64(const Type *t)
{
    return t->kind == TYPE_TENSOR && t->dtype == F64;
}

/* ---- what is differentiated: the sum of all float results, each element with a weight of its own ---- */

static bool evaluate_results(Trial *t, Tensor **out)
{
    const EvalOptions options = { .seed = 7 };
    return evaluate(t->forward, &options, &t->c->heap, (const Tensor *const *)t->x, out) == OK;
}

static bool set_weights(Trial *t)
{
    Tensor *out = NULL;
    const Node *y = graph_result(t->forward, 0);
    bool any = false;
    size_t n = 0;
    if (!evaluate_results(t, &out))
        return false;
    t->n_y = type_results(y->type);
    for (int k = 0; k < t->n_y; k++)
        n += (size_t)tensor_elements(t->n_y > 1 ? out->items[k] : out);
    t->weight = NEWS(&t->c->arena, double, n + 1);
    for (int k = 0; k < t->n_y; k++) {
        const Tensor *v = t->n_y > 1 ? out->items[k] : out;
        for (int64_t i = 0; i < tensor_elements(v); i++, t->n_weight++) {
            const bool counts = is_f64(v->type) && isfinite(tensor_get_f64(v, i));
            t->weight[t->n_weight] = counts ? 0.4 + fmod(0.3819660112501051 * (double)(t->n_weight + 1), 1) : 0;
        }
        any |= is_f64(v->type);
    }
    tensor_drop(&t->c->heap, out);
    return any;
}

static double weighted_sum(Trial *t)
{
    Tensor *out = NULL;
    double sum = 0;
    size_t at = 0;
    if (!evaluate_results(t, &out))
        return NAN;
    for (int k = 0; k < t->n_y; k++) {
        const Tensor *v = t->n_y > 1 ? out->items[k] : out;
        for (int64_t i = 0; i < tensor_elements(v); i++, at++)
            if (t->weight[at] != 0)
                sum += t->weight[at] * tensor_get_f64(v, i);
    }
    tensor_drop(&t->c->heap, out);
    return sum;
}

/* The fourth-order difference of the sum by one element, by steps of h; *noise is what rounding may have done to it. */
static double difference(Trial *t, int operand, int64_t i, double h, double *noise)
{
    const double x = tensor_get_f64(t->x[operand], i);
    static const double step[4] = { -2, -1, 1, 2 };
    double v[4], most = 0;
    for (int k = 0; k < 4; k++) {
        tensor_set_f64(t->x[operand], i, x + step[k] * h);
        v[k] = weighted_sum(t);
        most = fmax(most, fabs(v[k]));
    }
    tensor_set_f64(t->x[operand], i, x);
    *noise = 64 * most * 1.2e-16 / h;
    return (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h);
}

/* ---- the adjoint ---- */

static Status build_backward(Trial *t, Tally *tally)
{
    Graph *g = t->backward = graph_new(&t->c->ir, &t->c->arena, "b");
    Node *call = rebuild(t, g), **y = NEWS(&t->c->arena, Node *, t->n_y), **dy = NEWS(&t->c->arena, Node *, t->n_y);
    Build b = build_at_end(g);
    size_t at = 0;
    for (int k = 0; k < t->n_y; k++) {
        y[k] = build_part(&b, call, k);
        const int64_t n = type_elements(y[k]->type);
        bool counts = false;
        for (int64_t i = 0; i < n; i++)
            counts |= t->weight[at + (size_t)i] != 0;
        if (counts && is_float(y[k]->type)) {
            Tensor *w = tensor_new(&t->c->arena, y[k]->type);
            for (int64_t i = 0; i < n; i++)
                tensor_set_f64(w, i, t->weight[at + (size_t)i]);
            dy[k] = build_const(&b, w);
        }
        at += (size_t)n;
    }
    ReverseQuery q = { .n_y = t->n_y, .y = y, .dy = dy, .n_x = (int)g->n_inputs, .x = g->inputs };
    ReverseResult r;
    TRY(reverse(&b, &q, &t->c->arena, &r));
    for (size_t i = 0; i < r.n_stops; i++)
        tally->missing += r.stops[i].missing;
    graph_return(g, t->n, r.dx, NULL);
    return OK;
}

/* Whether the gradient by one element is the difference: steps that end at a kink are tried again, shorter. */
static bool agrees(Trial *t, int operand, int64_t i, double got, double *want)
{
    static const double steps[] = { 2e-4, 1e-5 };
    for (size_t k = 0; k < COUNT(steps); k++) {
        double noise;
        *want = difference(t, operand, i, steps[k], &noise);
        if (!isfinite(*want) || fabs(got - *want) <= 1e-6 * fmax(fabs(got), fabs(*want)) + 1e-9 + noise)
            return true;
    }
    return false;
}

static int check_operand(Trial *t, int i, Tally *tally, bool odd)
{
    const Tensor *dx = t->dx[i];
    const int64_t n = tensor_elements(t->x[i]);
    int bad = 0;
    if (dx && dx->type != t->x[i]->type)
        return sample_complain(t->sample, "the gradient has another type than its operand");
    for (int k = 0; k < MOST_ELEMENTS && k < n && !bad; k++) {
        const int64_t e = n <= MOST_ELEMENTS ? k : (k * 7919 + 13 * i) % n;
        double want;
        const double got = dx ? tensor_get_f64(dx, e) : 0;
        const bool good = agrees(t, i, e, got, &want);
        if (!isfinite(want) || (!isfinite(got) && odd))
            continue;
        tally->elements++;
        tally->of_operand[t->operand[i]]++;
        if (!good) {
            print_error("%s, variant %d, operand %d, element %d: gradient %.12g, difference %.12g\n",
                        t->sample->def->name, t->sample->variant, t->operand[i], (int)e, got, want);
            bad = 1;
        }
    }
    return bad;
}

/* ---- the same in f32, where the evaluator has code of its own ---- */

static double largest(const Tensor *t)
{
    double most = 0;
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        most = fmax(most, fabs(tensor_get_f64(t, i)));
    return most;
}

static int compare_f32(const Trial *wide, const Trial *t, int i)
{
    const double most = largest(wide->dx[i]), allowed = TOLERANCE_F32 * most + 1e-5;
    for (int64_t e = 0; e < tensor_elements(t->x[i]); e++) {
        const double want = wide->dx[i] ? tensor_get_f64(wide->dx[i], e) : 0,
                     got = t->dx[i] ? tensor_get_f64(t->dx[i], e) : 0;
        if (!isfinite(most) || fabs(got - want) <= allowed)
            continue;
        print_error("%s, variant %d, operand %d, element %d: gradient %.9g in f32, %.9g in f64\n", t->sample->def->name,
                    t->sample->variant, t->operand[i], (int)e, got, want);
        return 1;
    }
    return 0;
}

/* ---- the same with extents that only the run tells: right, or refused ---- */

static Status build_open(Trial *t, const Trial *wide, const Tensor **values)
{
    Graph *g = t->backward = graph_new(&t->c->ir, &t->c->arena, "q");
    Node *call = rebuild(t, g), **y = NEWS(&t->c->arena, Node *, t->n_y), **dy = NEWS(&t->c->arena, Node *, t->n_y);
    if (!call)
        return UNSUPPORTED;
    for (int i = 0; i < t->n; i++)
        values[i] = t->x[i];
    Build b = build_at_end(g);
    const Type *like = graph_result(wide->forward, 0)->type;
    size_t at = 0;
    for (int k = 0, n = t->n; k < t->n_y; k++) {
        const Type *type = t->in(&t->c->ir.types, type_result(like, k));
        y[k] = build_part(&b, call, k);
        if (is_float(type)) {
            Tensor *w = tensor_new(&t->c->arena, type);
            for (int64_t i = 0; i < tensor_elements(w); i++)
                tensor_set_f64(w, i, t->weight[at + (size_t)i]);
            dy[k] = graph_input(g, NULL, opened(&t->c->ir.types, type, t->open));
            values[n++] = w;
        }
        at += (size_t)type_elements(type);
    }
    const ReverseQuery q = { .n_y = t->n_y, .y = y, .dy = dy, .n_x = t->n, .x = g->inputs };
    ReverseResult r;
    TRY(reverse(&b, &q, &t->c->arena, &r));
    graph_return(g, t->n, r.dx, NULL);
    return OK;
}

static int check_open(const Trial *wide, Open open, Tally *tally)
{
    Trial t = { .c = wide->c,
                .sample = wide->sample,
                .in = as_f32,
                .open = open,
                .n_y = wide->n_y,
                .weight = wide->weight,
                .n_weight = wide->n_weight };
    const Tensor **values = NEWS(&t.c->arena, const Tensor *, MOST_OPERANDS + t.n_y);
    const EvalOptions options = { .seed = 7 };
    int bad = 0;
    t.c->last = NULL;
    const Status status = build_open(&t, wide, values);
    if (status == UNSUPPORTED) {
        tally->refused++;
        t.c->last = NULL;
        return 0;
    }
    if (status != OK)
        return sample_complain(t.sample, "fails where no extent is known");
    t.dx = NEWS(&t.c->arena, Tensor *, t.n + 1);
    if (evaluate(t.backward, &options, &t.c->heap, values, t.dx) != OK)
        return sample_complain(t.sample, "its gradient is not evaluated where no extent is known");
    tally->open++;
    for (int i = 0; i < t.n && !bad; i++) {
        if (t.dx[i] && t.dx[i]->type != t.x[i]->type)
            bad = sample_complain(t.sample, "its gradient has another shape where no extent is known");
        else
            bad = compare_f32(wide, &t, i);
    }
    for (int i = 0; i < t.n; i++)
        if (t.dx[i])
            tensor_drop(&t.c->heap, t.dx[i]);
    return bad;
}

static int check_f32(const Trial *wide, Tally *tally)
{
    Trial t = { .c = wide->c,
                .sample = wide->sample,
                .in = as_f32,
                .n_y = wide->n_y,
                .weight = wide->weight,
                .n_weight = wide->n_weight };
    const EvalOptions options = { .seed = 7 };
    int bad = 0;
    if (build_backward(&t, tally) != OK)
        return sample_complain(t.sample, "is not differentiated in f32");
    t.dx = NEWS(&t.c->arena, Tensor *, t.n + 1);
    if (evaluate(t.backward, &options, &t.c->heap, (const Tensor *const *)t.x, t.dx) != OK)
        return sample_complain(t.sample, "its gradient is not evaluated in f32");
    for (int i = 0; i < t.n; i++)
        bad += compare_f32(wide, &t, i);
    for (Open open = OPEN_ALL; open < OPENS; open++)
        bad += check_open(wide, open, tally);
    for (int i = 0; i < t.n; i++)
        if (t.dx[i])
            tensor_drop(&t.c->heap, t.dx[i]);
    return bad;
}

static int check_sample(Context *c, const Sample *sample, Tally *tally)
{
    Trial t = { .c = c, .sample = sample, .in = as_f64 };
    t.forward = graph_new(&c->ir, &c->arena, "f");
    Node *call = rebuild(&t, t.forward);
    int bad = 0;
    bool odd = false;
    c->last = NULL;
    if (!call || !t.n)
        return 0;
    graph_return(t.forward, 1, &call, NULL);
    if (!set_weights(&t))
        return 0;
    for (size_t i = 0; i < t.n_weight; i++)
        odd |= t.weight[i] == 0;
    if (build_backward(&t, tally) != OK)
        return sample_complain(sample, "is not differentiated");
    t.dx = NEWS(&c->arena, Tensor *, t.n + 1);
    const EvalOptions options = { .seed = 7 };
    if (evaluate(t.backward, &options, &c->heap, (const Tensor *const *)t.x, t.dx) != OK)
        return sample_complain(sample, "its gradient is not evaluated");
    tally->samples++;
    for (int i = 0; i < t.n; i++)
        bad += check_operand(&t, i, tally, odd);
    bad += bad ? 0 : check_f32(&t, tally);
    for (int i = 0; i < t.n; i++)
        if (t.dx[i])
            tensor_drop(&c->heap, t.dx[i]);
    return bad;
}

/* ---- the same in the types that the sample came with ---- */

/* The backward graph of ones is built, has the operands' types, and is evaluated. */
static int check_own_types(Context *c, const Sample *sample)
{
    Trial t = { .c = c, .sample = sample, .in = as_it_is };
    Graph *g = t.backward = graph_new(&c->ir, &c->arena, "o");
    Node *call = rebuild(&t, g);
    if (!call || !t.n)
        return 0;
    const int n_y = type_results(call->type);
    Node **y = NEWS(&c->arena, Node *, n_y), **dy = NEWS(&c->arena, Node *, n_y);
    Build b = build_at_end(g);
    for (int k = 0; k < n_y; k++) {
        y[k] = build_part(&b, call, k);
        if (y[k]->type->kind != TYPE_TENSOR || !dtype_is_float(y[k]->type->dtype) || !type_known(y[k]->type))
            continue;
        Tensor *ones = tensor_new(&c->arena, y[k]->type);
        for (int64_t i = 0; i < tensor_elements(ones); i++)
            tensor_set_f64(ones, i, 1);
        dy[k] = build_const(&b, ones);
    }
    const ReverseQuery q = { .n_y = n_y, .y = y, .dy = dy, .n_x = (int)g->n_inputs, .x = g->inputs, .narrow = true };
    ReverseResult r;
    int bad = 0;
    if (reverse(&b, &q, &c->arena, &r) != OK)
        return sample_complain(sample, "is not differentiated in its own types");
    for (int i = 0; i < t.n; i++)
        bad += r.dx[i] && r.dx[i]->type != t.x[i]->type;
    if (bad)
        return sample_complain(sample, "a gradient has another type than its operand");
    graph_return(g, t.n, r.dx, NULL);
    t.dx = NEWS(&c->arena, Tensor *, t.n + 1);
    const EvalOptions options = { .seed = 7 };
    if (evaluate(g, &options, &c->heap, (const Tensor *const *)t.x, t.dx) != OK)
        return sample_complain(sample, "its gradient is not evaluated in its own types");
    for (int i = 0; i < t.n; i++)
        if (t.dx[i])
            tensor_drop(&c->heap, t.dx[i]);
    return 0;
}

/* ---- cards ---- */

typedef struct CardCheck {
    Context c;
    const OpDef *def;
    Tally tally;
    int bad;
} CardCheck;

static Status check_variant(void *arg)
{
    CardCheck *k = arg;
    Sample s = { .c = &k->c, .def = k->def, .variant = k->tally.samples };
    for (s.variant = 0; s.variant < k->def->n_variants && k->tally.samples < MOST_SAMPLES && k->bad < 3; s.variant++)
        if (sample_build(&s))
            k->bad += check_sample(&k->c, &s, &k->tally) + check_own_types(&k->c, &s);
    return OK;
}

static Tally check_card(const OpDef *def, int *bad)
{
    CardCheck k = { .def = def };
    context_open(&k.c);
    const Status status = guarded(&k.c.memory, check_variant, &k);
    *bad += k.bad + (status != OK);
    if (k.tally.missing)
        print_error("%s has no adjoint\n", def->name), ++*bad;
    context_close(&k.c);
    return k.tally;
}

/* Operands that are smooth by the card, of which no element was ever checked. */
static int unchecked(const OpDef *d, const Tally *t)
{
    int n = 0;
    for (int i = 0; i < MOST_OPERANDS && (d->max_in < 0 ? i < 2 : i < d->max_in); i++)
        if (is_smooth(d, i) && !t->of_operand[i])
            print_error("%s: operand %d was never checked\n", d->name, i), n++;
    return n;
}

static void adjoints_agree_with_differences(void **state)
{
    (void)state;
    const char *only = getenv("QCC_OP"); /* one card, while it is written */
    int bad = 0, cards = 0, elements = 0, open = 0, refused = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        if (!d->differentiable || !d->sample || d->n_regions || (only && strcmp(only, d->name) != 0))
            continue;
        if (i == OP_amp_cast)
            continue; /* not of f64, and cast's adjoint */
        if (i == OP_straight)
            continue; /* no slope of what it gives, by its meaning: unit/passes/learned */
        if (d->gives_codes || i == OP_dequantize_linear)
            continue; /* straight through: unit/ops/quantizers */
        const Tally t = check_card(d, &bad);
        if (!t.missing)
            bad += unchecked(d, &t);
        elements += t.elements;
        open += t.open;
        refused += t.refused;
        cards++;
    }
    print_message("%d cards, %d elements; without extents %d samples agree, %d are refused\n", cards, elements, open,
                  refused);
    assert_true(elements > 0);
    assert_true(open > 0 && refused > 0);
    assert_int_equal(bad, 0);
}

/* ---- the list of ONNX ---- */

/* One operator in its newest version: the operands that ONNX marks differentiable are so here. */
static int marked_lack_gradients(const OnnxSchema *row)
{
    Op word;
    int bad = 0;
    if (!op_find_onnx(&ops_table, "", row->op, &word))
        return print_error("no card for %s\n", row->op), 1;
    const OpDef *d = ops_table.defs[word];
    for (int i = 0; i < row->n_in; i++)
        if (row->in[i].flags & ONNX_PARAM_DIFFERENTIABLE && (!is_smooth(d, i) || (!d->adjoint && !d->expand)))
            print_error("%s: operand %d has no gradient\n", row->op, i), bad++;
    return bad;
}

static bool is_marked(const OnnxSchema *row)
{
    for (int i = 0; i < row->n_in; i++)
        if (row->in[i].flags & ONNX_PARAM_DIFFERENTIABLE)
            return true;
    return false;
}

static void everything_onnx_marks_has_a_gradient(void **state)
{
    (void)state;
    size_t n_rows;
    const OnnxSchema *row = schema_all(&n_rows);
    int n = 0, bad = 0;
    for (size_t i = 0; i < n_rows; i++)
        if (strcmp(row[i].domain, "ai.onnx") == 0 && !schema_next(&row[i]) && is_marked(&row[i]))
            bad += marked_lack_gradients(&row[i]), n++;
    print_message("%d operators, %d operands without a gradient\n", n, bad);
    assert_int_equal(n, 120);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjoints_agree_with_differences),
        cmocka_unit_test(everything_onnx_marks_has_a_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
