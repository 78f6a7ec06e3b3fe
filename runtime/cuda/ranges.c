#include "runtime/cuda/ranges.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/cuda/library.h"

static const char *const libraries[] = { "libnvToolsExt.so.1", NULL };

static const LibrarySymbol symbols[] = {
    { "nvtxRangePushA", offsetof(Ranges, push) },
    { "nvtxRangePop", offsetof(Ranges, pop) },
    { "nvtxRangeStartA", offsetof(Ranges, start) },
    { "nvtxRangeEnd", offsetof(Ranges, end) },
};

static const char *begin(void *table, Arena *arena)
{
    (void)table;
    (void)arena;
    return NULL;
}

const char *ranges_find(Ranges *r, Arena *arena)
{
    static const Library library = { libraries, symbols, sizeof symbols / sizeof *symbols, begin };
    const char *why;
    r->library = library_find(&library, r, arena, &why);
    return r->library ? NULL : why;
}

void ranges_begin(const Ranges *r, RangeId *open, const char *what, uint64_t step)
{
    char name[64];
    if (!r)
        return;
    ranges_end(r, open);
    snprintf(name, sizeof name, "%.32s %" PRIu64, what, step);
    *open = r->start(name);
}

void ranges_end(const Ranges *r, RangeId *open)
{
    if (r && *open)
        r->end(*open);
    *open = 0;
}
