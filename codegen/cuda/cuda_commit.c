#include "codegen/cuda/cuda_commit.h"

/* Numbers are read byte by byte: they are of several types, and what makes one of them infinite or NaN is an exponent of
 * ones in each. */
static const char decide[] = "extern \"C\" __global__ void __launch_bounds__(%d)\n"
                             "%s(const u64 *asked, const u32 *refused, u64 *told)\n"
                             "{\n"
                             "    const u64 numbers = asked[0], flags = asked[1];\n"
                             "    const u8 *const applies = (const u8 *)asked[2];\n"
                             "    bool wrong = told[%d];\n"
                             "    for (u64 i = threadIdx.x; i < flags; i += %d)\n"
                             "        wrong = wrong || refused[i];\n"
                             "    if (threadIdx.x < numbers) {\n"
                             "        const u64 *const number = asked + 3 + 3 * threadIdx.x;\n"
                             "        const u8 *const at = (const u8 *)number[0];\n"
                             "        u64 bits = 0;\n"
                             "        for (u64 k = 0; k < number[1]; k++)\n"
                             "            bits |= (u64)at[k] << 8 * k;\n"
                             "        told[%d + threadIdx.x] = bits;\n"
                             "        wrong = wrong || (number[2] && (bits & number[2]) == number[2]);\n"
                             "    }\n"
                             "    wrong = __syncthreads_or(wrong);\n"
                             "    if (threadIdx.x == 0) {\n"
                             "        const bool applied = !wrong && (!applies || *applies);\n"
                             "        told[%d] = !wrong;\n"
                             "        told[%d] = applied;\n"
                             "        told[%d] = !applied;\n"
                             "    }\n"
                             "}\n";

static const char move[] = "\n"
                           "extern \"C\" __global__ void __launch_bounds__(%d)\n"
                           "%s(const u64 *moves, const u64 *told)\n"
                           "{\n"
                           "    const u64 *const to = moves + 4 * (u64)blockIdx.x, from = to[1], bytes = to[2];\n"
                           "    if (!told[to[3]])\n"
                           "        return;\n"
                           "    const u64 words = (to[0] | from) %% 8 ? 0 : bytes / 8;\n"
                           "    for (u64 i = threadIdx.x; i < words; i += %d)\n"
                           "        ((u64 *)to[0])[i] = ((const u64 *)from)[i];\n"
                           "    for (u64 i = 8 * words + threadIdx.x; i < bytes; i += %d)\n"
                           "        ((u8 *)to[0])[i] = ((const u8 *)from)[i];\n"
                           "}\n";

void cuda_commit_print(Text *out)
{
    text_printf(out, decide, COMMIT_DECIDERS, COMMIT_DECIDE, COMMIT_HELD, COMMIT_DECIDERS, COMMIT_TOLD, COMMIT_COUNTS,
                COMMIT_APPLIED, COMMIT_HELD);
    text_printf(out, move, COMMIT_MOVERS, COMMIT_MOVE, COMMIT_MOVERS, COMMIT_MOVERS);
}
