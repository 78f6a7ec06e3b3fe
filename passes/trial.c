#include "passes/trial.h"

#include <float.h>
#include <math.h>

#include "base/rng.h"

static void hush_undo(void *thing)
{
    Hush *h = thing;
    h->ir->diag = h->was;
}

void hush_begin(Hush *h, Ir *ir, Arena *scratch)
{
    h->ir = ir;
    h->was = ir->diag;
    diag_open(&h->none, scratch, NULL, NULL);
    cleanup_push(ir->memory, &h->cleanup, hush_undo, h);
    ir->diag = &h->none;
}

void hush_end(Hush *h)
{
    cleanup_drop(&h->cleanup);
    h->ir->diag = h->was;
}

/* ---- inputs ---- */

enum { UNKNOWN_EXTENT = 2, LARGEST_INPUT = 1 << 24 };

static const Type *input_type(Types *types, const Type *t)
{
    int64_t dims[MAX_RANK];
    size_t bytes;
    if (t->kind != TYPE_TENSOR || t->dtype == STRING)
        return NULL;
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i] < 0 ? UNKNOWN_EXTENT : t->dims[i];
    const Type *known =
        t->rank < 0 ? type_vector(types, t->dtype, UNKNOWN_EXTENT) : type_tensor(types, t->dtype, t->rank, dims);
    return type_bytes(known, &bytes) && bytes <= LARGEST_INPUT ? known : NULL;
}

/* Ordinary numbers, and now and then one that rules forget. */
static double draw(Rng *rng, DType d, bool special)
{
    static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, FLT_MIN / 4, -6e-8 };
    if (!dtype_is_float(d))
        return dtype_class(d) == CLASS_INT ? (double)rng_range(rng, -2, 2) : (double)rng_below(rng, 2);
    if (special && rng_below(rng, 6) == 0)
        return odd[rng_below(rng, (int64_t)COUNT(odd))];
    return 4 * rng_unit(rng) - 2;
}

static Tensor *draw_input(const Node *n, Rng *rng, Arena *scratch, bool special)
{
    const Type *type = input_type(&n->graph->ir->types, n->type);
    Tensor *t = type ? tensor_new(scratch, type) : NULL;
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        tensor_set_f64(t, i, draw(rng, type->dtype, special));
    return t;
}

/* ---- comparison ---- */

static double epsilon(DType d)
{
    return d == F64 ? 0x1p-52 : d == F32 ? 0x1p-23 : d == F16 ? 0x1p-10 : d == BF16 ? 0x1p-7 : 0.25;
}

/* How far two values may be apart, in parts of the larger of them and of the tensor's usual size. */
static double slack(Exactness may, DType d)
{
    if (may == PRECISION)
        return 0x1p-4;
    return may == ELASTIC ? fmax(32 * epsilon(d), 0x1p-7) : 64 * epsilon(d);
}

static double usual_size(const Tensor *t)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const double v = fabs(tensor_get_f64(t, i));
        if (v < INFINITY) {
            sum += v;
            n++;
        }
    }
    return n ? sum / (double)n : 0;
}

static bool near(double x, double y, double usual, double part, bool saturates)
{
    if (x == y || (isnan(x) && isnan(y)))
        return true;
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return saturates; /* another width overflows elsewhere */
    return fabs(x - y) <= part * fmax(usual, fmax(fabs(x), fabs(y)));
}

bool values_agree(const Tensor *a, const Tensor *b, Exactness may)
{
    if (a->type->kind != TYPE_TENSOR || b->type->kind != TYPE_TENSOR || may == EXACT || a->type != b->type ||
        !dtype_is_float(a->type->dtype))
        return tensor_same(a, b);
    const double usual = usual_size(a), part = slack(may, a->type->dtype);
    for (int64_t i = 0; i < tensor_elements(a); i++)
        if (!near(tensor_get_f64(a, i), tensor_get_f64(b, i), usual, part, may > ROUNDS))
            return false;
    return true;
}

static const char *compare_results(Graph *a, Tensor **x, Tensor **y, Exactness may, Arena *scratch)
{
    for (int i = 0; i < graph_n_results(a); i++) {
        if (!x[i] && !y[i])
            continue;
        if (x[i] && y[i] && values_agree(x[i], y[i], may))
            continue;
        const char *name = graph_result_name(a, i);
        return arena_printf(scratch, "result %d%s%s is another", i, name ? " " : "", name ? name : "");
    }
    return NULL;
}

const char *trial_compare(Graph *a, Graph *b, Exactness may, uint64_t seed, Arena *scratch, bool *ran)
{
    const char *difference = NULL;
    const int n = graph_n_results(a);
    const Tensor **inputs = NEWS(scratch, const Tensor *, a->n_inputs + 1);
    Tensor **x = NEWS(scratch, Tensor *, n + 1), **y = NEWS(scratch, Tensor *, n + 1);
    Rng rng = { seed };
    *ran = false;
    if (a->n_inputs != b->n_inputs || n != graph_n_results(b))
        return "the signature is another";
    for (size_t i = 0; i < a->n_inputs; i++) {
        inputs[i] = draw_input(a->inputs[i], &rng, scratch, may == EXACT);
        if (!inputs[i])
            return NULL;
    }
    Heap heap;
    Hush hush;
    const EvalOptions options = { .seed = seed };
    heap_open(&heap, a->ir->memory);
    hush_begin(&hush, a->ir, scratch);
    *ran = evaluate(a, &options, &heap, inputs, x) == OK;
    if (*ran && evaluate(b, &options, &heap, inputs, y) != OK)
        difference = "it can no longer be evaluated";
    hush_end(&hush);
    if (*ran && !difference)
        difference = compare_results(a, x, y, may, scratch);
    heap_close(&heap);
    return difference;
}
