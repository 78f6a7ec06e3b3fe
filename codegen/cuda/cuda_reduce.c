/* Reductions that stand alone, in the order of ops/reduce.h, whichever axes they fold:
 *
 *     fold     a warp for each element of the result: rows by segments of 1024, columns by four blocks of 64 at a time
 *     columns  a thread for each element, of columns, where there are many
 */
#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/card/reduction.h"
#include "ops/fold/reduce_axes.h"

enum { WARPS = 8, MANY = 1 << 13 };

typedef struct Fold {
    CallMaker *m;
    const char *kind, *type;
    int64_t n; /* elements that become one */
} Fold;

static const char *const kinds[] = { [REDUCE_SUM] = "sum",
                                     [REDUCE_SQUARES] = "squares",
                                     [REDUCE_PRODUCT] = "product",
                                     [REDUCE_MAX] = "max",
                                     [REDUCE_MIN] = "min" };

static const char *check(const CallMaker *m, const Fold *f)
{
    const Iteration *it = &m->w.it;
    if (it->n_out != 1 || it->in[0].reach != REACH_AFFINE || it->in[0].guard || it->begins != NO_OPERAND)
        return "a reduction that reads as kernels do not";
    if (it->order != ORDER_ROW && it->order != ORDER_COLUMN && it->order != ORDER_ANY)
        return "a reduction in an order of its own";
    if (!cuda_walk_elements(&m->w))
        return "a result without elements";
    return f->n || dtype_is_float(in(m->call, 0)->type->dtype) ? NULL : "a reduction of no integers";
}

/* acc = acc and element number k of those that fold, if there is one. */
static void print_element(const Fold *f, const char *k, const char *acc, int indent)
{
    const CallMaker *m = f->m;
    const Access *a = &m->w.it.in[0];
    const Type *t = in(m->call, 0)->type;
    text_printf(m->w.out, "%*sif (%s < %" PRId64 ") {\n", 4 * indent, "", k, f->n);
    cuda_walk_digits(&m->w, m->w.it.folded, m->w.it.n_folded, k, indent + 1);
    text_printf(m->w.out, "%*s%s = %s_add_%s(%s, %s);\n%*s}\n", 4 * indent + 4, "", acc, f->kind, f->type, acc,
                cuda_load(&m->words, t->dtype, m->arithmetic,
                          arena_printf(m->w.arena, "in0[%s]", cuda_walk_place(&m->w, a, t))),
                4 * indent, "");
}

/* Block by block, of which a thread takes eight elements that follow each other in each step. */
static void print_blocks(const Fold *f, int block, int step, const char *first, const char *join)
{
    Text *out = f->m->w.out;
    const char *index = f->m->w.index;
    text_printf(out, "    for (%s base = 0; base < %" PRId64 "; base += %d) {\n        %s a[8];\n", index, f->n, block,
                f->type);
    text_printf(out, "        %s_clear_%s(a);\n", f->kind, f->type);
    text_printf(out, "        for (%s at = base; at < base + %d && at < %" PRId64 "; at += %d)\n", index, block, f->n,
                step);
    text_printf(out, "#pragma unroll\n            for (u32 e = 0; e < 8; e++) {\n");
    text_printf(out, "                const %s k = at + %se;\n", index, first);
    print_element(f, "k", "a[e]", 4);
    text_printf(out, "            }\n        %s_push_%s(&all, %s_%s_%s(a));\n    }\n", f->kind, f->type, f->kind, join,
                f->type);
}

static void print_row(const Fold *f)
{
    print_blocks(f, 1024, 256, "8 * lane + ", "warp");
}

static void print_column(const Fold *f)
{
    Text *out = f->m->w.out;
    const char *index = f->m->w.index;
    text_printf(out, "    for (%s at = 0; at < %" PRId64 "; at += 256) {\n", index, f->n);
    text_printf(out, "        %s a = %s_none_%s();\n", f->type, f->kind, f->type);
    text_printf(out, "        for (u32 e = 0; e < 64; e += 8) {\n");
    text_printf(out, "            const %s k = at + lane / 8 * 64 + e + lane %% 8;\n", index);
    print_element(f, "k", "a", 3);
    text_printf(out, "        }\n        %s_four_%s(&all, a, (%" PRId64 " - at + 63) / 64);\n    }\n", f->kind, f->type,
                f->n);
}

/* A thread walks a column by itself. */
static void print_long_column(const Fold *f)
{
    print_blocks(f, 64, 8, "", "eight");
}

static const char *print_total(const Fold *f, bool warp)
{
    CallMaker *m = f->m;
    text_printf(m->w.out, "    const %s value = %s_total_%s(&all);\n", f->type, f->kind, f->type);
    text_printf(m->w.out, "%s    out0[o] = %s;\n", warp ? "    if (lane == 0)\n    " : "",
                cuda_store(&m->words, m->arithmetic, cuda_call_result(m, 0)->dtype, "value"));
    cuda_call_close(m);
    return NULL;
}

const char *cuda_reduce(CallMaker *m)
{
    Fold f = { .m = m, .n = 1 };
    Reduction r;
    for (int i = 0; i < m->w.it.n_folded; i++)
        f.n *= m->w.it.extent[m->w.it.folded[i]];
    const char *why = reduction_of(m->call, &r) ? check(m, &f) : "a call of its own kind";
    if (why)
        return why;
    const int64_t n = cuda_walk_elements(&m->w);
    const bool columns = m->w.it.order == ORDER_COLUMN, alone = columns && n >= MANY;
    m->arithmetic = dtype_wide(in(m->call, 0)->type->dtype);
    f.kind = kinds[r.kind];
    f.type = dtype_name(m->arithmetic);
    if (alone) {
        cuda_call_open(m, "columns", n);
    } else {
        cuda_call_head(m, "fold", (n + WARPS - 1) / WARPS, WARPS * CUDA_WARP);
        text_printf(m->w.out, "    const u32 lane = threadIdx.x %% 32;\n");
        text_printf(m->w.out, "    const %s o = (%s)blockIdx.x * %d + threadIdx.x / 32;\n", m->w.index, m->w.index,
                    WARPS);
        text_printf(m->w.out, "    if (o >= %" PRId64 ")\n        return;\n", n);
    }
    why = cuda_walk_from_result(&m->w, 1);
    if (why)
        return why;
    text_printf(m->w.out, "    %s_counter_%s all;\n    all.count = 0;\n", f.kind, f.type);
    (alone ? print_long_column : columns ? print_column : print_row)(&f);
    return print_total(&f, !alone);
}
