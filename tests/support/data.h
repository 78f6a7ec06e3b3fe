/* A dataset and a feed over it, for tests: opened from the texts that people write. */
#ifndef TESTS_SUPPORT_DATA_H
#define TESTS_SUPPORT_DATA_H

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/data/feed.h"

/* Fails the test with a formatted message. */
#define data_wrong(...) (print_error(__VA_ARGS__), assert_true(false))

typedef struct Data {
    Dataset *ds;
    Feed *feed;
    DataOptions options;
    FeedOptions order;
    Limits limits;
} Data;

/* A new file: some file systems write one that was cut to nothing to disk at once. */
static inline void write_file(const char *path, const void *bytes, size_t n)
{
    unlink(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static inline Status data_open_specs(Data *data, Context *c, const DataInput *inputs, size_t n, size_t n_specs,
                                     const DataSpec *specs, size_t n_fills, const DataFill *fills)
{
    data->ds = NULL;
    data->feed = NULL;
    TRY(dataset_open(&data->ds, &c->memory, &c->ir.types, &c->diag, &data->limits, &data->options, n, inputs, n_specs,
                     specs, n_fills, fills));
    const Status status = feed_open(&data->feed, data->ds, &c->diag, &data->order);
    if (status != OK)
        dataset_close(data->ds);
    return status;
}

/* With the limits, options and order that stand in `data`. */
static inline Status data_open_limited(Data *data, Context *c, const DataInput *inputs, size_t n, const char *text)
{
    DataSpec spec;
    TRY(data_spec_read(&c->diag, &c->arena, "--data", text, &spec));
    return data_open_specs(data, c, inputs, n, 1, &spec, 0, NULL);
}

/* In the order of the file. */
static inline Status data_open(Data *data, Context *c, const DataInput *inputs, size_t n, const char *text)
{
    *data = (Data){ .limits = LIMITS_DEFAULT };
    return data_open_limited(data, c, inputs, n, text);
}

static inline Status data_open_both(Data *data, Context *c, const DataInput *inputs, size_t n, const char *text,
                                    const char *target)
{
    DataSpec specs[2];
    *data = (Data){ .limits = LIMITS_DEFAULT };
    TRY(data_spec_read(&c->diag, &c->arena, "--data", text, &specs[0]));
    TRY(data_spec_read(&c->diag, &c->arena, "--target", target, &specs[1]));
    return data_open_specs(data, c, inputs, n, 2, specs, 0, NULL);
}

static inline void data_close(Data *data)
{
    feed_close(data->feed);
    dataset_close(data->ds);
}

#endif
