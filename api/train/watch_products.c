/* --watch-products: what products of few bits lose of what they read: numbers whose code is 0, and those at the end of the
 * codes.  The step that is reported runs once more on the evaluator, which sees every value; nothing changes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/train/train.h"
#include "ops/quant/quantize.h"

/* One operand that products read as codes. */
typedef struct OperandWatched {
    const Node *codes, *from; /* what was rounded */
    const char *name;         /* of the call of the model */
    bool gradient;            /* it arrives from behind; else data */
    const char *format;
    double largest;                  /* code */
    int64_t n, numbers, zeros, ends; /* codes; numbers that are not 0; of these with a code that is; codes at an end */
} OperandWatched;

typedef struct ProductsWatch {
    OperandWatched *list;
    size_t n;
} ProductsWatch;

/* ---- what is there ---- */

/* What codes were made of; null: the value is none that products read. */
static const Node *rounded(const Node *n)
{
    const Node *call = n->op == OP_part ? in(n, 0) : n;
    const bool both = n->op == OP_part && call->op == OP_quantize_both && n->type->dtype != F32;
    return both || call->op == OP_quantize_linear ? in(call, 0) : NULL;
}

/* "node 3 /fc1/Gemm" is selected by /fc1/Gemm. */
static const char *name_of_call(Arena *arena, const Node *n)
{
    static const char node[] = "node ";
    const char *where = node_place(n->op == OP_part ? in(n, 0) : n).where;
    if (!where)
        return "?";
    if (strncmp(where, node, sizeof node - 1) == 0)
        where += sizeof node - 1;
    const size_t digits = strspn(where, "0123456789");
    return arena_string(arena, where + (where[digits] == ' ' ? digits + 1 : 0));
}

/* The largest code: what its word says, or what its type has. */
static double largest_code(const Node *n)
{
    const Node *call = n->op == OP_part ? in(n, 0) : n;
    const DType type = n->type->dtype;
    const int64_t said = call->op == OP_quantize_both ? ((const QuantizeBothAttr *)call->attr)->largest
                                                      : ((const QuantizeAttr *)call->attr)->largest;
    if (dtype_is_integer(type))
        return said ? (double)said : (double)(((int64_t)1 << (dtype_bits(type) - 1)) - 1);
    return type == F8E4M3 ? 448 : type == F8E5M2 ? 57344 : type == F6E2M3 ? 7.5 : type == F6E3M2 ? 28 : 6;
}

/* "int4", "f8e4m3": integers of fewer bits than their type has are what they reach to. */
static const char *format_of(Arena *arena, const Node *n)
{
    if (!dtype_is_integer(n->type->dtype))
        return dtype_name(n->type->dtype);
    return arena_printf(arena, "int%d", (int)ceil(log2(largest_code(n) + 1)) + 1);
}

Status train_products_open(Trainer *t)
{
    Arena *arena = &t->step->arena;
    Graph *g = module_graph(t->step->module, "step");
    if (!option_given(&t->c->line, OPT_watch_products))
        return OK;
    if (!t->step->recipe.quantization.products) {
        Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                                 "--watch-products: this step has no products of few bits");
        message_try(m, "--quant int8-matmul, or another format of products");
        return message_send(m);
    }
    ProductsWatch *watch = NEW(arena, ProductsWatch);
    watch->list = NEWS(arena, OperandWatched, graph_count(g) + 1);
    for (const Node *n = g->first; n; n = n->next) {
        const Node *from = rounded(n);
        if (!from || from->op == OP_state) /* weights are no surprise: they are there before and after */
            continue;
        watch->list[watch->n++] = (OperandWatched){ .codes = n,
                                                    .from = from,
                                                    .name = name_of_call(arena, n),
                                                    .gradient = (from->flags & NODE_BACKWARD) != 0,
                                                    .largest = largest_code(n),
                                                    .format = format_of(arena, n) };
    }
    t->products = watch;
    return OK;
}

/* ---- looking ---- */

typedef struct Look {
    ProductsWatch *watch;
    Heap *heap;
    Tensor **from; /* of each operand: the numbers, kept until their codes are there */
} Look;

static void count(OperandWatched *w, const Tensor *from, const Tensor *codes)
{
    w->n = tensor_elements(codes);
    w->numbers = w->zeros = w->ends = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const double code = tensor_get_f64(codes, i);
        const bool number = tensor_get_f64(from, i) != 0;
        w->numbers += number;
        w->zeros += number && code == 0;
        w->ends += fabs(code) >= w->largest;
    }
}

static void see(void *user, const Node *n, const Tensor *value)
{
    Look *look = user;
    for (size_t i = 0; value && i < look->watch->n; i++) {
        OperandWatched *w = &look->watch->list[i];
        if (w->from == n && !look->from[i]) {
            look->from[i] = tensor_alloc(look->heap, value->type);
            memcpy(look->from[i]->data, value->data, value->bytes);
        }
        if (w->codes == n && look->from[i] && tensor_elements(look->from[i]) == tensor_elements(value)) {
            count(w, look->from[i], value);
            tensor_drop(look->heap, look->from[i]);
            look->from[i] = NULL;
        }
    }
}

/* ---- telling ---- */

static double share(int64_t n, int64_t of)
{
    return of ? (double)n / (double)of : 0;
}

static Status tell_people(Trainer *t)
{
    const ProductsWatch *watch = t->products;
    const OperandWatched *worst = NULL;
    int64_t numbers = 0, zeros = 0;
    if (t->cx->verbosity < 1 || out_is_json(t->c->out))
        return OK;
    for (size_t i = 0; i < watch->n; i++) {
        const OperandWatched *w = &watch->list[i];
        if (!w->gradient)
            continue;
        numbers += w->numbers;
        zeros += w->zeros;
        if (!worst || share(w->zeros, w->numbers) > share(worst->zeros, worst->numbers))
            worst = w;
    }
    if (!worst)
        return OK;
    return out_printf(t->c->out,
                      "%-16s step %" PRId64 ": %.3g %% of gradients have the code 0, the most of %s (%.3g %%)\n",
                      "products", t->done, 100 * share(zeros, numbers), name_text(&t->cx->scratch, worst->name),
                      100 * share(worst->zeros, worst->numbers));
}

static Status tell_log(Trainer *t, const OperandWatched *w)
{
    const LogProduct line = { .step = logged_int(t->done),
                              .node = logged_text(w->name),
                              .operand = logged_text(w->gradient ? "gradient" : "data"),
                              .format = logged_text(w->format),
                              .codes = logged_int(w->n),
                              .numbers = logged_int(w->numbers),
                              .zeros = logged_f32((float)share(w->zeros, w->numbers)),
                              .ends = logged_f32((float)share(w->ends, w->n)) };
    return train_log_product(t, &line);
}

Status train_products_step(Trainer *t)
{
    Heap heap;
    ProductsWatch *watch = t->products;
    if (!watch || !train_watch_is_due(t, t->done))
        return OK;
    heap_open(&heap, &t->cx->memory);
    Look look = { watch, &heap, NEWS(&t->cx->scratch, Tensor *, watch->n + 1) };
    memset(look.from, 0, watch->n * sizeof *look.from);
    const Status status = session_replay(t->run, see, &look);
    heap_close(&heap);
    TRY(status);
    TRY(tell_people(t));
    for (size_t i = 0; i < watch->n; i++)
        if (watch->list[i].n)
            TRY(tell_log(t, &watch->list[i]));
    return OK;
}
