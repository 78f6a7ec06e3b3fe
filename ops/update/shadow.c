#include "ops/update/shadow.h"

#include <string.h>

#include "ops/card/eval.h"

const char *shadow_master(const char *name)
{
    const size_t n = sizeof SHADOW_PREFIX - 1;
    return name && strncmp(name, SHADOW_PREFIX, n) == 0 ? name + n : NULL;
}

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
