/* Calls on elements that share bytes (types of less than eight bits): the kernels of such a call see each of them by itself in the
 * scratch, where the first kernel puts those of an operand, and from where the last one packs those of a result.
 *
 *     unpack   a thread for each element of an operand
 *     pack     a thread for each byte of a result
 */
#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"

enum { ALIGNMENT = 16 };

static int64_t take(CallMaker *m, const Type *t)
{
    const size_t at = m->apart;
    m->apart += ((size_t)type_elements(t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return (int64_t)at;
}

static bool is_packed(const Type *t)
{
    return t->kind == TYPE_TENSOR && cuda_packed(t->dtype) && type_known(t);
}

/* The scratch of the kernels between begins behind what lies apart. */
static void place(CallMaker *m)
{
    const int n_out = type_results(m->call->type);
    m->in_apart = NEWS(m->w.arena, int64_t, m->call->n_in + 1);
    m->out_apart = NEWS(m->w.arena, int64_t, n_out + 1);
    for (int i = 0; i < m->call->n_in; i++)
        m->in_apart[i] =
            in(m->call, i) && is_packed(in(m->call, i)->type) ? take(m, in(m->call, i)->type) : CUDA_NOWHERE;
    for (int i = 0; i < n_out; i++)
        m->out_apart[i] = is_packed(cuda_call_result(m, i)) ? take(m, cuda_call_result(m, i)) : CUDA_NOWHERE;
}

void cuda_call_unpack(CallMaker *m)
{
    place(m);
    for (int i = 0; i < m->call->n_in; i++) {
        const int64_t n = m->in_apart[i] == CUDA_NOWHERE ? 0 : type_elements(in(m->call, i)->type);
        if (!n)
            continue;
        const int at = cuda_call_argument(m, i);
        m->w.index = "i64";
        cuda_call_open(m, arena_printf(m->w.arena, "unpack%d", i), n);
        text_printf(
            m->w.out, "    ((%s *)(room + %" PRId64 "))[o] = %s;\n", cuda_storage(in(m->call, i)->type->dtype),
            m->in_apart[i],
            cuda_element(m->w.arena, in(m->call, i)->type->dtype, arena_printf(m->w.arena, "packed%d", at), "o"));
        cuda_call_close(m);
    }
}

void cuda_call_pack(CallMaker *m)
{
    for (int i = 0; i < type_results(m->call->type); i++) {
        const Type *t = cuda_call_result(m, i);
        size_t bytes;
        if (m->out_apart[i] == CUDA_NOWHERE || !type_bytes(t, &bytes) || !bytes)
            continue;
        m->w.index = "i64";
        cuda_call_open(m, arena_printf(m->w.arena, "pack%d", i), (int64_t)bytes);
        text_printf(m->w.out, "    packing%d[o] = %s;\n", i,
                    cuda_byte(m->w.arena, t->dtype, arena_printf(m->w.arena, "out%d", i), "o", type_elements(t)));
        cuda_call_close(m);
    }
    m->launch->scratch += m->apart;
}

void cuda_call_apart(const CallMaker *m)
{
    Text *out = m->w.out;
    if (!m->apart)
        return;
    for (int i = 0; i < m->call->n_in; i++)
        if (m->in_apart[i] != CUDA_NOWHERE) {
            const char *type = cuda_storage(in(m->call, i)->type->dtype);
            text_printf(out, "    const %s *const in%d = (const %s *)(room + %" PRId64 ");\n", type,
                        cuda_call_argument(m, i), type, m->in_apart[i]);
        }
    for (int i = 0; i < type_results(m->call->type); i++)
        if (m->out_apart[i] != CUDA_NOWHERE) {
            const char *type = cuda_storage(cuda_call_result(m, i)->dtype);
            text_printf(out, "    %s *const out%d = (%s *)(room + %" PRId64 ");\n", type, i, type, m->out_apart[i]);
        }
    text_printf(out, "    u8 *const scratch = room + %zu;\n", m->apart);
}
