#include "codegen/cuda/cuda_call.h"

#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/card/cards.h"
#include "ops/card/reduction.h"
#include "ops/fold/reduce_axes.h"
#include "ops/kernels/panel.h"

enum { MOST_BLOCKS = 0x7fffffff, BIAS = 2 };

const Type *cuda_call_result(const CallMaker *m, int i)
{
    return access_result(m->call, i);
}

/* ---- heads ---- */

static const char *check_types(const Node *call, int n_out)
{
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i) && (in(call, i)->type->kind != TYPE_TENSOR || !cuda_storage(in(call, i)->type->dtype)))
            return "an operand of a type that kernels do not know";
    for (int i = 0; i < n_out; i++)
        if (!cuda_storage(access_result(call, i)->dtype))
            return "a result of a type that kernels do not know";
    return NULL;
}

void cuda_call_head(CallMaker *m, const char *part, int64_t blocks, int threads)
{
    BUG_IF(m->w.arena->memory, m->launch->n == CUDA_KERNELS);
    CudaKernel *k = &m->launch->kernels[m->launch->n++];
    const Node *call = m->whole ? m->whole : m->call;
    const char *in_name = m->whole ? "arg" : "in", *out_name = m->whole ? "res" : "out";
    Text *out = m->w.out;
    if (m->launch->n > 1)
        text_char(out, '\n');
    *k = (CudaKernel){ arena_printf(out->arena, "%s_%s", m->name, part), blocks, threads, m->tensor };
    /* sums of a warp want registers more than a processor wants blocks */
    text_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d%s)\n%s(", threads, m->tensor ? ", 1" : "",
                k->name);
    for (int i = 0, at = 0; i < call->n_in; i++)
        if (in(call, i)) {
            const DType d = in(call, i)->type->dtype;
            text_printf(out, "const %s *%s%d, ", cuda_memory(d), cuda_packed(d) ? "packed" : in_name, at++);
        }
    for (int i = 0; i < type_results(call->type); i++) {
        const DType d = access_result(call, i)->dtype;
        text_printf(out, "%s *%s%d, ", cuda_memory(d), cuda_packed(d) ? "packing" : out_name, i);
    }
    text_printf(out, "%s%s%su8 *%s)\n{\n%s", m->launch->draws ? "const u64 *draws, " : "",
                m->launch->refuses ? "u32 *refused, " : "", m->launch->late ? CUDA_APPLIED " " : "",
                m->apart || m->whole ? "room" : "scratch", m->launch->late ? CUDA_UNLESS_APPLIED : "");
    if (m->whole)
        cuda_own_factors(m);
    else
        cuda_call_apart(m);
}

void cuda_call_open(CallMaker *m, const char *part, int64_t threads)
{
    cuda_call_head(m, part, (threads + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
    text_printf(m->w.out, "    const %s o = (%s)blockIdx.x * %d + threadIdx.x;\n", m->w.index, m->w.index,
                CUDA_THREADS);
    text_printf(m->w.out, "    if (o >= %" PRId64 ")\n        return;\n", threads);
}

void cuda_call_close(const CallMaker *m)
{
    text_printf(m->w.out, "}\n");
}

int cuda_call_argument(const CallMaker *m, int operand)
{
    int at = 0;
    for (int i = 0; i < operand; i++)
        at += in(m->call, i) != NULL;
    return at;
}

void cuda_call_indices(const CallMaker *m, const Access *a, const Type *t, const char *otherwise, int indent)
{
    const Type *by = in(m->call, a->by)->type;
    const char *at = cuda_walk_place(&m->w, &m->w.it.in[a->by], by);
    const int from = cuda_call_argument(m, a->by);
    Text *out = m->w.out;
    for (int k = 0; a->reach == REACH_INDEXED && k < a->by_n; k++) {
        const int64_t extent = t->dims[a->by_dim + k];
        const char *place = k ? arena_printf(m->w.arena, "%s + %d", at, k) : at;
        text_printf(out, "%*si64 j%d = (i64)in%d[%s];\n", 4 * indent, "", k, from, place);
        text_printf(out, "%*sj%d += j%d < 0 ? %" PRId64 " : 0;\n", 4 * indent, "", k, k, extent);
        text_printf(out, "%*sif (j%d < 0 || j%d >= %" PRId64 ") {\n", 4 * indent, "", k, k, extent);
        text_printf(out, "%*s%s;\n", 4 * indent + 4, "", CUDA_REFUSE);
        text_printf(out, "%*s%s\n%*s}\n", 4 * indent + 4, "", otherwise, 4 * indent, "");
    }
}

void cuda_call_factor(const CallMaker *m, int operand, const char *name, int at)
{
    const Access *a = &m->w.it.in[operand];
    const Type *t = in(m->call, operand)->type;
    const char *inside = cuda_walk_inside(&m->w, a, t);
    const char *element =
        arena_printf(m->w.arena, "in%d[%s]", cuda_call_argument(m, operand), cuda_walk_place(&m->w, a, t));
    const char *value = m->arithmetic == t->dtype ? element : cuda_load(&m->words, t->dtype, m->arithmetic, element);
    if (inside)
        text_printf(m->w.out, "%*sconst bool %s_is_there = %s;\n", at, "", name, inside);
    text_printf(m->w.out, "%*sconst %s %s = ", at, "", dtype_name(m->arithmetic), name);
    if (inside)
        text_printf(m->w.out, "%s_is_there ? %s : 0;\n", name, value);
    else
        text_printf(m->w.out, "%s;\n", value);
}

/* ---- sums of products ---- */

/* A product of integers, whose sums wrap in any order. */
static bool is_whole_product(const CallMaker *m)
{
    return op_of(m->call)->access.kind == ACCESS_CONTRACT && m->w.it.order == ORDER_ANY &&
           !dtype_is_float(in(m->call, 0)->type->dtype);
}

static const char *check_chain(const CallMaker *m)
{
    const Iteration *it = &m->w.it;
    const Access *bias = m->call->n_in > BIAS && in(m->call, BIAS) ? &it->in[BIAS] : NULL;
    if ((it->order != ORDER_FMA && !is_whole_product(m)) || it->n_out != 1 || it->n_in < 2 || it->n_in > BIAS + 1)
        return "a call of its own kind";
    if (it->in[0].reach != REACH_AFFINE || it->in[1].reach != REACH_AFFINE || it->fill_by != NO_OPERAND ||
        it->fill != 0 || (it->begins != NO_OPERAND && it->begins != BIAS))
        return "a sum that begins or reads as kernels do not";
    if (bias && bias->reach != REACH_BESIDE)
        return "a sum with more than a bias beside it";
    return cuda_walk_elements(&m->w) ? NULL : "a result without elements";
}

/* What stands beside a sum is read where the element of the result is. */
static const char *bias_place(const CallMaker *m)
{
    const Access *a = &m->w.it.in[BIAS];
    const Type *t = in(m->call, BIAS)->type;
    const int rank = cuda_call_result(m, 0)->rank;
    int64_t each = 1;
    Text place;
    text_open(&place, m->w.arena);
    for (int d = a->rank - 1; d >= 0; d--) {
        for (int s = 0; s < rank; s++)
            cuda_walk_term(&place, each * a->step[d * rank + s], "r", s);
        each *= t->dims[d];
    }
    return place.n ? text_get(&place) : "0";
}

static void print_term(const CallMaker *m, int indent, bool segments)
{
    const char *t = dtype_name(m->arithmetic), *bits = dtype_bits(m->arithmetic) == 32 ? "u32" : "u64";
    const int at = 4 * indent;
    Text *out = m->w.out;
    cuda_call_factor(m, 0, "x", at);
    cuda_call_factor(m, 1, "y", at);
    if (dtype_is_float(m->arithmetic))
        text_printf(out, "%*ssum = fma_%s(x, y, sum);\n", at, "", t);
    else
        text_printf(out, "%*ssum = (%s)((%s)sum + (%s)x * (%s)y);\n", at, "", t, bits, bits, bits);
    if (!segments)
        return;
    text_printf(out, "%*sif (++terms == %d) {\n", at, "", PANEL_SEGMENT);
    text_printf(out, "%*ssum_push_%s(&segments, sum);\n", at + 4, "", t);
    text_printf(out, "%*ssum = 0;\n%*sterms = 0;\n%*s}\n", at + 4, "", at + 4, "", at, "");
}

bool cuda_call_adds(const CallMaker *m)
{
    return m->call->n_in > BIAS && in(m->call, BIAS) && m->w.it.begins != BIAS;
}

const char *cuda_call_begin(const CallMaker *m)
{
    return m->w.it.begins == BIAS ? arena_printf(m->w.arena, "in%d[o]", cuda_call_argument(m, BIAS)) : "0";
}

void cuda_call_total(const CallMaker *m, bool segments, int indent)
{
    const char *t = dtype_name(m->arithmetic), *value = "sum";
    const int at = 4 * indent;
    Text *out = m->w.out;
    if (segments) {
        text_printf(out, "%*sif (terms)\n%*ssum_push_%s(&segments, sum);\n", at, "", at + 4, "", t);
        text_printf(out, "%*ssum = sum_total_%s(&segments);\n", at, "", t);
    }
    if (cuda_call_adds(m)) {
        const char *place = arena_printf(m->w.arena, "in%d[%s]", cuda_call_argument(m, BIAS), bias_place(m));
        const DType own = in(m->call, BIAS)->type->dtype;
        text_printf(out, "%*ssum = sum + %s;\n", at, "",
                    own == m->arithmetic ? place : cuda_load(&m->words, own, m->arithmetic, place));
    }
    text_printf(out, "%*sout0[o] = %s;\n", at, "",
                cuda_store(&m->words, m->arithmetic, cuda_call_result(m, 0)->dtype, value));
}

const char *cuda_chain(CallMaker *m)
{
    const bool whole = is_whole_product(m), segments = !whole && cuda_walk_points(&m->w) > PANEL_SEGMENT;
    const char *t, *why = check_chain(m);
    if (why)
        return why;
    m->arithmetic = dtype_wide(in(m->call, 0)->type->dtype);
    if (whole && cuda_call_result(m, 0)->dtype == I32)
        m->arithmetic = I32; /* nothing above its bits is kept */
    t = dtype_name(m->arithmetic);
    if (!whole && cuda_tile(m))
        return NULL;
    cuda_call_open(m, "chain", cuda_walk_elements(&m->w));
    why = cuda_walk_from_result(&m->w, 1);
    if (why)
        return why;
    text_printf(m->w.out, "    %s sum = %s;\n", t, cuda_call_begin(m));
    if (segments)
        text_printf(m->w.out, "    sum_counter_%s segments = { 0 };\n    u32 terms = 0;\n", t);
    const int open = cuda_walk_loops(&m->w, 1);
    print_term(m, 1 + open, segments);
    for (int i = open; i > 0; i--)
        text_printf(m->w.out, "%*s}\n", 4 * i, "");
    cuda_call_total(m, segments, 1);
    text_printf(m->w.out, "}\n");
    return NULL;
}

/* ---- moves ---- */

/* Whether a call gives elements of its operands and nothing else. */
static const char *check_copy(const CallMaker *m)
{
    const Iteration *it = &m->w.it;
    const AccessKind kind = op_of(m->call)->access.kind;
    if ((kind != ACCESS_MOVE && kind != ACCESS_GATHER) || it->n_folded || it->fill_by != NO_OPERAND ||
        it->begins != NO_OPERAND)
        return "a call of its own kind";
    for (int i = 0; i < it->n_in; i++)
        if (it->in[i].guard == GUARD_MASK || (it->in[i].guard == GUARD_FILL && it->fill != 0))
            return "a move that fills";
    for (int i = 0; i < it->n_out; i++)
        if (cuda_call_result(m, i)->dtype != in(m->call, 0)->type->dtype || it->out[i].reach == REACH_TYPE)
            return "a move that changes what it moves";
    return NULL;
}

static void print_store(const CallMaker *m, int i, int indent)
{
    const Access *a = &m->w.it.out[i];
    const char *inside = cuda_walk_inside(&m->w, a, cuda_call_result(m, i));
    if (inside)
        text_printf(m->w.out, "%*sif (%s)\n", 4 * indent++, "", inside);
    text_printf(m->w.out, "%*sout%d[%s] = x;\n", 4 * indent, "", i, cuda_walk_place(&m->w, a, cuda_call_result(m, i)));
}

static bool is_moved(const CallMaker *m, int i)
{
    for (int k = 0; k < m->call->n_in; k++)
        if (in(m->call, k) && m->w.it.in[k].reach == REACH_INDEXED && m->w.it.in[k].by == i)
            return false; /* it says where */
    return in(m->call, i) && m->w.it.in[i].reach != REACH_TYPE;
}

/* An element of an operand, where the point has one, to where it goes. */
static void print_move(const CallMaker *m, int i)
{
    const Access *a = &m->w.it.in[i];
    const Type *t = in(m->call, i)->type;
    const char *inside = cuda_walk_inside(&m->w, a, t);
    const char *from = arena_printf(m->w.arena, "in%d[%s]", cuda_call_argument(m, i), cuda_walk_place(&m->w, a, t));
    const bool fills = inside && a->guard == GUARD_FILL;
    text_printf(m->w.out, inside && !fills ? "    if (%s) {\n" : "    {\n", inside);
    cuda_call_indices(m, a, t, "return;", 2);
    text_printf(m->w.out, "        const %s x = ", cuda_storage(t->dtype));
    text_printf(m->w.out, fills ? "%s ? %s : 0;\n" : "%.0s%s;\n", fills ? inside : "", from);
    for (int k = 0; k < m->w.it.n_out; k++)
        print_store(m, k, 2);
    text_printf(m->w.out, "    }\n");
}

static const char *print_copy(CallMaker *m)
{
    const char *why = check_copy(m);
    int64_t points = 1, read = 0;
    if (why)
        return why;
    for (int s = 0; s < m->w.it.rank; s++)
        points *= m->w.it.extent[s];
    for (int i = 0; i < m->call->n_in; i++)
        read += is_moved(m, i);
    if (!points || !read)
        return "a result without elements";
    cuda_call_open(m, "copy", points);
    cuda_walk_from_point(&m->w, 1);
    for (int i = 0; i < m->call->n_in; i++)
        if (is_moved(m, i))
            print_move(m, i);
    text_printf(m->w.out, "}\n");
    return NULL;
}

/* Those that a card writes itself, or those that its walk gives. */
static const char *print_own(CallMaker *m, Text *text)
{
    const OpDef *def = op_of(m->call);
    Reduction r;
    if (cuda_product(m) || cuda_own(m))
        return NULL;
    if (def->expand && !def->access.iterate)
        return "a composite, which its parts compute";
    const char *why = cuda_walk_open(&m->w, text, m->call);
    if (why)
        return why;
    if (reduction_of(m->call, &r))
        return cuda_reduce(m);
    if (m->w.it.order == ORDER_FMA || is_whole_product(m))
        return cuda_chain(m);
    return m->w.it.order == ORDER_PLACE ? cuda_scatter(m) : print_copy(m);
}

static bool makes_nothing(const CallMaker *m)
{
    bool any = op_of(m->call)->access.refuses;
    for (int i = 0; i < type_results(m->call->type); i++)
        any = any || !type_known(cuda_call_result(m, i)) || type_elements(cuda_call_result(m, i));
    return !any;
}

/* Without elements there is nothing to do, which no host has to do either: a kernel of no blocks. */
static void print_nothing(CallMaker *m)
{
    cuda_call_head(m, "nothing", 0, CUDA_THREADS);
    cuda_call_close(m);
}

static const char *print_kernels(CallMaker *m, Text *text)
{
    m->w = (CudaWalk){ .out = text, .arena = text->arena, .call = m->call };
    m->words = (CudaMaker){ .out = text, .arena = text->arena };
    const char *why = check_types(m->call, type_results(m->call->type));
    if (why)
        return why;
    if (makes_nothing(m)) {
        print_nothing(m);
        return NULL;
    }
    cuda_call_unpack(m);
    why = print_own(m, text);
    if (!why)
        cuda_call_pack(m);
    return why;
}

const char *cuda_print_call(Text *out, const KernelTarget *target, const Node *call, const char *name, bool late,
                            CudaLaunch *launch)
{
    Text text; /* nothing stands in `out` of what turns out to have no kernels */
    CallMaker m = { .call = call, .name = name, .launch = launch, .target = *target };
    *launch = (CudaLaunch){ .refuses = op_of(call)->access.refuses, .late = late };
    text_open(&text, out->arena);
    const char *why = print_kernels(&m, &text);
    for (int i = 0; i < launch->n && !why; i++)
        if (launch->kernels[i].blocks > MOST_BLOCKS)
            why = "more blocks than a launch takes";
    if (why)
        *launch = (CudaLaunch){ .n = 0 };
    else
        text_add(out, text_get(&text));
    return why;
}
