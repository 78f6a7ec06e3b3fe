/* Kernels that cards write themselves (ops/card/own_kernel.h): their heads, and what they call their operands. */
#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"
#include "ir/build.h"
#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"
#include "ops/contract/contract.h"

static void name_operand(const CallMaker *m, int i)
{
    const DType d = in(m->call, i)->type->dtype;
    const int at = cuda_call_argument(m, i);
    text_printf(m->w.out, "#define RAW%d in%d\n", i, at);
    text_printf(m->w.out, "#define IN%d(i) (%s)\n", i,
                cuda_load(&m->words, d, dtype_wide(d), arena_printf(m->w.arena, "in%d[i]", at)));
    text_printf(m->w.out, "#define ROUND%d(v) (%s)\n", i,
                cuda_load(&m->words, d, dtype_wide(d), cuda_store(&m->words, dtype_wide(d), d, "(v)")));
}

static void name_result(const CallMaker *m, int i)
{
    const DType d = cuda_call_result(m, i)->dtype;
    text_printf(m->w.out, "#define OUTRAW%d out%d\n", i, i);
    text_printf(m->w.out, "#define OUT%d(i, v) out%d[i] = %s\n", i, i, cuda_store(&m->words, dtype_wide(d), d, "(v)"));
}

/* What their bodies call what they read and make; or no longer. */
static void names(const CallMaker *m, bool begin)
{
    static const char *const of_operands[] = { "RAW", "IN", "ROUND" }, *const of_results[] = { "OUTRAW", "OUT" };
    const int results = type_results(m->call->type);
    if (m->launch->refuses)
        text_add(m->w.out, begin ? "#define REFUSE " CUDA_REFUSE "\n" : "#undef REFUSE\n");
    for (int i = 0; begin && i < m->call->n_in; i++)
        if (in(m->call, i))
            name_operand(m, i);
    for (int i = 0; begin && i < results; i++)
        name_result(m, i);
    for (size_t k = 0; !begin && k < COUNT(of_operands); k++)
        for (int i = 0; i < m->call->n_in; i++)
            if (in(m->call, i))
                text_printf(m->w.out, "#undef %s%d\n", of_operands[k], i);
    for (size_t k = 0; !begin && k < COUNT(of_results); k++)
        for (int i = 0; i < results; i++)
            text_printf(m->w.out, "#undef %s%d\n", of_results[k], i);
}

static void print_kernel(CallMaker *m, const OwnKernel *k)
{
    m->tensor = k->tensor;
    if (k->block) {
        cuda_call_head(m, k->part, k->n, k->block);
        text_printf(m->w.out, "    const i64 block = blockIdx.x;\n    const u32 thread = threadIdx.x;\n");
    } else {
        cuda_call_head(m, k->part, (k->n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
        text_printf(m->w.out, "    const i64 o = (i64)blockIdx.x * %d + threadIdx.x;\n", CUDA_THREADS);
        text_printf(m->w.out, "    if (o >= %" PRId64 ")\n        return;\n", k->n);
    }
    text_add(m->w.out, k->body);
    cuda_call_close(m);
}

/* ---- products ---- */

static Node *stack_input(Graph *g, const OwnMatrices *m)
{
    return graph_input(g, NULL, type_tensor(&g->ir->types, m->type, 3, (const int64_t[]){ m->n, m->rows, m->columns }));
}

/* A call that is this product, in a graph of its own. */
static Node *call_of(const CallMaker *m, const OwnProduct *p)
{
    Graph *g = graph_new(m->call->graph->ir, m->w.arena, "product");
    Node *const factors[] = { stack_input(g, &p->a), stack_input(g, &p->b) };
    Build b = build_at_end(g);
    const MatmulAttr at = { .ta = p->ta, .tb = p->tb, .out = p->d.type == p->a.type ? 0 : (int)p->d.type + 1 };
    return build_node(&b, OP_matmul, &at, 2, factors);
}

static const char *place_text(const CallMaker *m, const OwnMatrices *p)
{
    if (p->where == OWN_SCRATCH)
        return arena_printf(m->w.arena, "(room + %zu)", p->at);
    if (p->where == OWN_RESULT)
        return arena_printf(m->w.arena, "res%d", p->number);
    int at = 0;
    for (int i = 0; i < p->number; i++)
        at += in(m->whole, i) != NULL;
    return arena_printf(m->w.arena, "arg%d", at);
}

void cuda_own_factors(const CallMaker *m)
{
    const OwnProduct *p = m->product;
    const OwnMatrices *const factors[] = { &p->a, &p->b };
    Text *out = m->w.out;
    for (int i = 0; i < 2; i++) {
        const char *type = cuda_storage(factors[i]->type);
        text_printf(out, "    const %s *const in%d = (const %s *)%s;\n", type, i, type, place_text(m, factors[i]));
    }
    const char *type = cuda_storage(p->d.type);
    text_printf(out, "    %s *const out0 = (%s *)%s;\n", type, type, place_text(m, &p->d));
    text_printf(out, "    u8 *const scratch = room + %zu;\n", m->room);
}

/* The kernels of the product stand among those of the call. */
static bool print_product(CallMaker *m, const OwnKernel *k)
{
    CallMaker part = *m;
    size_t *scratch = &m->launch->scratch;
    const size_t before = *scratch;
    part.call = call_of(m, k->product);
    part.whole = m->call;
    part.product = k->product;
    part.room = before;
    part.name = arena_printf(m->w.arena, "%s_%s", m->name, k->part);
    part.tensor = false;
    *scratch = 0;
    const bool made = !cuda_walk_open(&part.w, m->w.out, part.call) && !cuda_chain(&part);
    *scratch = before + *scratch;
    return made;
}

static bool all_known(const Node *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i) && !type_known(in(call, i)->type))
            return false;
    for (int i = 0; i < type_results(call->type); i++)
        if (!type_known(type_result(call->type, i)) || !type_elements(type_result(call->type, i)))
            return false;
    return true;
}

bool cuda_own(CallMaker *m)
{
    const OpDef *def = op_of(m->call);
    OwnKernels own = { .arena = m->w.arena, .narrow = m->target.narrow };
    if (!def->access.kernels || !all_known(m->call) || !def->access.kernels(m->call, &own))
        return false;
    bool made = true;
    size_t most = own.scratch;
    m->launch->draws = own.draws;
    names(m, true);
    for (int i = 0; i < own.n && made; i++) {
        m->launch->scratch = own.scratch;
        if (own.list[i].product)
            made = print_product(m, &own.list[i]);
        else
            print_kernel(m, &own.list[i]);
        most = m->launch->scratch > most ? m->launch->scratch : most;
    }
    names(m, false);
    BUG_IF(m->w.arena->memory, !made);
    m->launch->scratch = most;
    return true;
}
