#include "golden/values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ir/build.h"
#include "ops/card/eval.h"
#include "ir/role.h"
#include "ops/update/shadow.h"
#include "passes/engine/trial.h"

enum { UNKNOWN_EXTENT = 2 };

static const Type *known_type(Types *types, const Type *t)
{
    int64_t dims[MAX_RANK];
    if (t->kind != TYPE_TENSOR || t->dtype == STRING)
        return NULL;
    if (t->rank < 0)
        return type_vector(types, t->dtype, UNKNOWN_EXTENT);
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i] < 0 ? UNKNOWN_EXTENT : t->dims[i];
    return type_tensor(types, t->dtype, t->rank, dims);
}

/* Eighths in [-4, 4]: exact in every float of some width, with ties and zeros of both signs. */
static double draw(Rng *r, DType d)
{
    const double v = (double)rng_range(r, -32, 32) / 8;
    if (d == BOOL)
        return (double)rng_below(r, 2);
    if (dtype_is_float(d))
        return v == 0 && rng_below(r, 2) ? -0.0 : v;
    return dtype_class(d) == CLASS_UINT ? (double)rng_below(r, 4) : (double)rng_range(r, -2, 1);
}

static Tensor *draw_input(const Node *n, Arena *arena)
{
    const Type *type = known_type(&n->graph->ir->types, n->type);
    if (!type)
        return NULL;
    Tensor *t = tensor_new(arena, type);
    Rng rng = { 1 };
    for (const char *p = n->name ? n->name : ""; *p; p++)
        rng.state = (rng.state ^ (unsigned char)*p) * 0x100000001b3u;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, draw(&rng, type->dtype));
    return t;
}

static const Node *named(const Graph *g, const char *name)
{
    for (size_t i = 0; name && i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

/* A state that `before` does not have begins as it says, a shadow as its master. */
static const Tensor *input_of(const Node *n, const Graph *before, Arena *arena)
{
    const bool known = !before || n->op != OP_state || !n->name || named(before, n->name);
    const Node *master = known || !is_state(n, STATE_shadow) ? NULL : named(before, node_role(n).of);
    if (!master)
        return known ? draw_input(n, arena) : trial_initial(n, arena);
    Tensor *t = tensor_new(arena, n->type);
    shadow_fill(t, draw_input(master, arena));
    return t;
}

static Tensor **evaluate_after(Graph *g, const Graph *before, Heap *heap, Arena *arena)
{
    const Tensor **inputs = NEWS(arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(arena, Tensor *, graph_n_results(g) + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        inputs[i] = input_of(g->inputs[i], before, arena);
        if (!inputs[i]) {
            (void)fail(g->ir->diag, node_place(g->inputs[i]), "an input of this type has no sample (# no-values)");
            return NULL;
        }
    }
    return evaluate(g, NULL, heap, inputs, results) == OK ? results : NULL;
}

Tensor **golden_evaluate(Graph *g, Heap *heap, Arena *arena)
{
    return evaluate_after(g, NULL, heap, arena);
}

static double tolerance(DType d)
{
    return d == F64 ? 1e-12 : d == F32 ? 1e-5 : d == F16 ? 2e-3 : d == BF16 ? 1.6e-2 : 0.25;
}

static bool near(const Tensor *a, const Tensor *b)
{
    if (a->type != b->type || !dtype_is_float(a->type->dtype))
        return tensor_same(a, b);
    for (int64_t i = 0; i < tensor_elements(a); i++) {
        const double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance(a->type->dtype) * fmax(1, fabs(x))))
            return false;
    }
    return true;
}

static bool agree(const Tensor *a, const Tensor *b, Exactness may)
{
    return may == EXACT ? tensor_same(a, b) : may == ROUNDS ? near(a, b) : values_agree(a, b, may);
}

static const char *compare(Graph *a, Graph *b, Exactness may, Heap *heap, Arena *arena)
{
    Tensor **x = golden_evaluate(a, heap, arena), **y = x ? evaluate_after(b, a, heap, arena) : NULL;
    if (!x || !y)
        return "cannot be evaluated";
    for (int i = 0; i < graph_n_results(a); i++) {
        const int k = trial_result(a, i, b);
        if (k == TRIAL_GONE)
            continue;
        if (k == TRIAL_LOST)
            return arena_printf(arena, "result %d is gone", i);
        if (x[i] && y[k] ? !agree(x[i], y[k], may) : x[i] || y[k])
            return arena_printf(arena, "values of result %d differ", i);
    }
    return NULL;
}

const char *golden_compare(Graph *a, Graph *b, Exactness may, Arena *arena)
{
    Heap heap;
    heap_open(&heap, a->ir->memory);
    const char *difference = compare(a, b, may, &heap, arena);
    heap_close(&heap);
    return difference;
}

static Graph *constants(Graph *g, Heap *heap, Arena *arena)
{
    const int n = graph_n_results(g);
    Graph *out = graph_new(g->ir, arena, g->name);
    Tensor **results = golden_evaluate(g, heap, arena);
    Node **values = NEWS(arena, Node *, n + 1);
    Build b = build_at_end(out);
    if (!results)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (!results[i] || results[i]->type->kind != TYPE_TENSOR)
            continue;
        Tensor *t = tensor_new(arena, results[i]->type);
        memcpy(t->data, results[i]->data, t->bytes);
        values[i] = build_const(&b, t);
        values[i]->name = graph_result_name(g, i);
    }
    graph_return(out, n, values, NULL);
    return out;
}

Module *golden_values(const Module *m, Arena *arena)
{
    Module *out = module_new(m->ir, arena);
    Heap heap;
    heap_open(&heap, m->ir->memory);
    for (size_t i = 0; out && i < m->n_graphs; i++) {
        Graph *g = constants(m->graphs[i], &heap, arena);
        if (g)
            module_add(out, g);
        else
            out = NULL;
    }
    heap_close(&heap);
    return out;
}
