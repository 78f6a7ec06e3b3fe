#include "ops/update/shadow.h"

#include "ops/card/eval.h"

enum { BLOCK = 1024 };

void shadow_fill(Tensor *shadow, const Tensor *master)
{
    f32 block[BLOCK];
    const int64_t n = tensor_elements(master);
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t k = n - at < BLOCK ? n - at : BLOCK;
        load_f32(block, master, at, k);
        store_f32(shadow, at, block, k);
    }
}
