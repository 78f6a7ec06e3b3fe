#include "passes/engine/trial.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ops/update/shadow.h"
#include "ir/role.h"

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

/* ---- two graphs ---- */

static int input_named(const Graph *g, const char *name)
{
    for (size_t i = 0; name && i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return (int)i;
    return -1;
}

const Tensor *trial_initial(const Node *state, Arena *scratch)
{
    Payload *initial = state_initial(state);
    if (initial)
        return payload_cached(initial, state->graph->ir->diag);
    if (!tensor_holds(state->type))
        return NULL;
    return tensor_new(scratch, state->type);
}

/* A state that only the second graph has: its initial value, or that of its master, rounded. */
static const Tensor *new_state(const Graph *a, const Tensor *const *x, const Node *n, Arena *scratch)
{
    const int master = is_state(n, STATE_shadow) ? input_named(a, node_role(n).of) : -1;
    if (master < 0 || !x[master])
        return trial_initial(n, scratch);
    Tensor *t = tensor_new(scratch, n->type);
    shadow_fill(t, x[master]);
    return t;
}

/* What the second graph reads: by name what the first one does, and what it has besides. */
static Status match_inputs(const Graph *a, const Tensor *const *x, const Graph *b, const Tensor **y, Rng *rng,
                           Arena *scratch)
{
    for (size_t i = 0; i < b->n_inputs; i++) {
        const Node *n = b->inputs[i];
        const int same = i < a->n_inputs && a->inputs[i]->name == n->name ? (int)i : input_named(a, n->name);
        if (same >= 0 && !type_agrees(a->inputs[same]->type, n->type))
            return INVALID;
        if (same >= 0)
            y[i] = x[same];
        else
            y[i] = n->op == OP_state ? new_state(a, x, n, scratch) : draw_input(n, rng, scratch, false);
        if (!y[i])
            return INVALID;
    }
    return OK;
}

/* What the compiler returns for itself: marked results, and next values of states that are not the model's. */
static bool is_of_training(const Graph *a, int i)
{
    const RoleMark mark = graph_result_mark(a, i);
    const int state = input_named(a, graph_result_name(a, i));
    return mark.role ? mark.role != RESULT_gradient
                     : state >= 0 && a->inputs[state]->op == OP_state && !is_model_state(a->inputs[state]);
}

int trial_result(const Graph *a, int i, const Graph *b)
{
    const char *name = graph_result_name(a, i), *at = i < graph_n_results(b) ? graph_result_name(b, i) : NULL;
    if (i < graph_n_results(b) && (name == at || (name && at && strcmp(name, at) == 0)))
        return i;
    for (int k = 0; name && k < graph_n_results(b); k++)
        if (graph_result_name(b, k) && strcmp(graph_result_name(b, k), name) == 0)
            return k;
    return is_of_training(a, i) ? TRIAL_GONE : TRIAL_LOST;
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

static const char *compare_results(const Graph *a, Tensor **x, const Graph *b, Tensor **y, Exactness may,
                                   Arena *scratch)
{
    for (int i = 0; i < graph_n_results(a); i++) {
        const int k = trial_result(a, i, b);
        const char *name = graph_result_name(a, i);
        if (k == TRIAL_GONE || (k >= 0 && (x[i] && y[k] ? values_agree(x[i], y[k], may) : !x[i] && !y[k])))
            continue;
        return arena_printf(scratch, "result %d%s%s is %s", i, name ? " " : "", name ? name : "",
                            k < 0 ? "gone" : "another");
    }
    return NULL;
}

const char *trial_compare(Graph *a, Graph *b, Exactness may, uint64_t seed, Arena *scratch, bool *ran)
{
    const char *difference = NULL;
    const Tensor **from = NEWS(scratch, const Tensor *, a->n_inputs + 1);
    const Tensor **to = NEWS(scratch, const Tensor *, b->n_inputs + 1);
    Tensor **x = NEWS(scratch, Tensor *, graph_n_results(a) + 1), **y = NEWS(scratch, Tensor *, graph_n_results(b) + 1);
    Rng rng = { seed };
    *ran = false;
    for (size_t i = 0; i < a->n_inputs; i++) {
        from[i] = draw_input(a->inputs[i], &rng, scratch, may == EXACT);
        if (!from[i])
            return NULL;
    }
    if (match_inputs(a, from, b, to, &rng, scratch) != OK)
        return "the signature is another";
    if (may == MEANING)
        return NULL;
    Heap heap;
    Hush hush;
    const EvalOptions options = { .seed = seed };
    heap_open(&heap, a->ir->memory);
    hush_begin(&hush, a->ir, scratch);
    *ran = evaluate(a, &options, &heap, from, x) == OK;
    if (*ran && evaluate(b, &options, &heap, to, y) != OK)
        difference = "it can no longer be evaluated";
    hush_end(&hush);
    if (*ran && !difference)
        difference = compare_results(a, x, b, y, may, scratch);
    heap_close(&heap);
    return difference;
}
