/* Any bytes as a .idx file, as one that is packed, and as the packed bytes themselves. */
#include <zlib.h>

#include "fuzz/data.h"

const FuzzForm fuzz_form = FUZZ_BYTES;

/* gzip, as `gzip` writes it; the size, 0 where that is not possible. */
static size_t pack(uint8_t *out, size_t cap, const uint8_t *data, size_t n)
{
    enum { GZIP_WINDOW = 15 + 16, USUAL_MEMORY = 8 };
    z_stream z = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)cap };
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, USUAL_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    const int done = deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return done == Z_STREAM_END ? z.total_out : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t cap = size + size / 100 + 64;
    uint8_t *packed = malloc(cap);
    data_fuzz(".idx", data, size);
    data_fuzz(".idx.gz", data, size);
    const size_t n = packed ? pack(packed, cap, data, size) : 0;
    if (n)
        data_fuzz(".idx.gz", packed, n);
    free(packed);
    return 0;
}
