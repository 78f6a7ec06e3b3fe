/* Any bytes as a data file of some form: an error or batches, and all memory given back. */
#ifndef TESTS_FUZZ_DATA_H
#define TESTS_FUZZ_DATA_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "ops/card/cards.h"
#include "runtime/data/feed.h"

typedef struct DataFuzz {
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    Limits limits;
    const char *path;
} DataFuzz;

enum { DATA_FUZZ_BATCHES = 16 };

/* Reads the first batches of the file as samples of this type. */
static void data_fuzz_read(DataFuzz *z, const DataSpec *spec, const Type *type)
{
    Dataset *ds;
    Feed *feed;
    Batch b;
    const DataInput input = { .name = "x", .type = type };
    const FeedOptions order = { .last = FEED_KEEP };
    if (dataset_open(&ds, &z->memory, &z->ir.types, &z->diag, &z->limits, NULL, 1, &input, 1, spec, 0, NULL) != OK)
        return;
    if (feed_open(&feed, ds, &z->diag, &order) == OK) {
        Status status = OK;
        for (int64_t i = 0; status == OK && i < feed_batches(feed) && i < DATA_FUZZ_BATCHES; i++)
            status = feed_batch(feed, &z->diag, 0, i, &b);
        feed_close(feed);
    }
    dataset_close(ds);
}

static Status data_fuzz_all(void *arg)
{
    DataFuzz *z = arg;
    DataSpec spec;
    const Type *type;
    const int64_t fixed[] = { 2, 2, 3 };
    arena_open(&z->arena, &z->memory);
    diag_open(&z->diag, &z->arena, NULL, NULL);
    ir_open(&z->ir, &z->arena, &ops_table, &z->diag);
    if (data_spec_read(&z->diag, &z->arena, "--data", z->path, &spec) != OK)
        abort();
    if (data_probe(&z->memory, &z->ir.types, &z->diag, &z->limits, NULL, &spec, &type) == OK && type &&
        type_elements(type) > 0) { /* whatever it is, is what is wanted */
        int64_t dims[MAX_RANK];
        memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
        dims[0] = dims[0] < 2 ? dims[0] : 2;
        data_fuzz_read(z, &spec, type_tensor(&z->ir.types, F32, type->rank, dims));
    }
    data_fuzz_read(z, &spec, type_tensor(&z->ir.types, F32, 3, fixed));
    arena_close(&z->arena);
    return OK;
}

/* Over a file whose name ends in `end`. */
static void data_fuzz(const char *end, const uint8_t *bytes, size_t n)
{
    DataFuzz z = { .limits = LIMITS_DEFAULT };
    char path[64] = "fuzz-XXXXXX";
    strcat(path, end);
    const int fd = mkstemps(path, (int)strlen(end));
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    z.path = path;
    z.limits.data_bytes = z.limits.elements = 1 << 20;
    memory_open(&z.memory, NULL);
    z.memory.budget = 64 << 20;
    (void)guarded(&z.memory, data_fuzz_all, &z);
    close(fd);
    unlink(path);
    if (z.memory.used)
        abort();
}

#endif
