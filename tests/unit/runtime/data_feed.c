/* From files to batches: what fits, what is converted, in which order, and whose fault it is. */
#include "testing.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "support/data_arrays.h"

/* ---- what fits ---- */

static Status shapes_fit_or_say_why(void *arg)
{
    static const struct {
        DType dtype;
        int rank;
        int64_t dims[5];
        const char *spec, *says;
    } rows[] = {
        { F32, 4, { 8, 3, 4, 5 }, "x.npy", NULL },
        { F32, 4, { 8, 4, 5, 3 }, "x.npy:layout=nhwc", NULL },
        { F32,
          4,
          { 8, 4, 5, 3 },
          "x.npy",
          "x.npy: f32[8,4,5,3] does not fit input x f32[batch,3,4,5]\n  try: --data x=x.npy:layout=nhwc\n" },
        { U8,
          4,
          { 8, 4, 5, 3 },
          "x=x.npy:scale=1/255",
          "x.npy: u8[8,4,5,3] does not fit input x f32[batch,3,4,5]\n"
          "  try: --data x=x.npy:scale=1/255,layout=nhwc\n" },
        { F32,
          2,
          { 8, 60 },
          "x.npy",
          "x.npy: f32[8,60] does not fit input x f32[batch,3,4,5]\n  try: --data x=x.npy:shape=3x4x5\n" },
        { F32, 2, { 8, 60 }, "x.npy:shape=3x4x5", NULL },
        { F64, 2, { 8, 60 }, "x.npy:shape=4x5x3,layout=nhwc", NULL },
        { F32, 5, { 8, 3, 1, 4, 5 }, "x.npy", NULL },
        { F32, 3, { 8, 4, 5 }, "x.npy", "x.npy: f32[8,4,5] does not fit input x f32[batch,3,4,5]\n" },
        { F32, 4, { 8, 3, 4, 5 }, "x.npy:shape=3x20", "x.npy: f32[8,3,4,5] does not fit" },
        { BOOL, 4, { 8, 3, 4, 5 }, "x.npy", NULL },
        { BF16, 4, { 8, 3, 4, 5 }, "x.npy", NULL },
    };
    Context *c = arg;
    const DataInput input = input_of(c, "x", F32, 4, DIMS(2, 3, 4, 5));
    for (size_t i = 0; i < COUNT(rows); i++) {
        Data data;
        npy_file(c, "x.npy", rows[i].dtype, rows[i].rank, rows[i].dims, count);
        c->last = "";
        const Status status = data_open(&data, c, &input, 1, rows[i].spec);
        if (status != (rows[i].says ? INVALID : OK) || (rows[i].says && !strstr(c->last, rows[i].says)))
            data_wrong("row %zu: %d: %s", i, status, c->last);
        if (status == OK)
            data_close(&data);
    }
    unlink("x.npy");
    return OK;
}

static Status element_types_fit_or_say_why(void *arg)
{
    static const struct {
        DType from, to;
        bool fits;
    } rows[] = {
        { U8, F32, true },    { I64, F32, true },  { F64, F32, true },  { F16, F32, true },  { F32, F16, true },
        { F32, BF16, true },  { BOOL, F32, true }, { U8, I64, true },   { I32, I64, true },  { U64, I64, true },
        { I64, I32, true },   { BOOL, I64, true }, { I64, BOOL, true }, { F32, I64, false }, { F64, I32, false },
        { F32, BOOL, false }, { U64, U64, true },  { U64, F64, true },  { I64, I4, true },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        Data data;
        Batch b;
        const DataInput input = input_of(c, "x", rows[i].to, 1, DIMS(2));
        npy_file(c, "x.npy", rows[i].from, 1, DIMS(2), number);
        const Status status = data_open(&data, c, &input, 1, "x.npy");
        assert_int_equal(status, rows[i].fits ? OK : INVALID);
        if (status == OK) {
            assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
            assert_true(tensor_get_f64(b.values[0], 0) == 0 && tensor_get_f64(b.values[0], 1) == 1);
            data_close(&data);
        } else {
            assert_non_null(strstr(c->last, "does not fit input x"));
            assert_non_null(strstr(c->last, "x.astype(numpy.int64)"));
        }
    }
    unlink("x.npy");
    return OK;
}

/* ---- what is computed ---- */

static Status pictures_are_scaled_and_turned(void *arg)
{
    Context *c = arg;
    Data data;
    Batch b;
    const DataInput input = input_of(c, "x", F32, 4, DIMS(4, 3, 20, 30));
    static const double mean[] = { 0.5, 0.25, 0.125 }, std[] = { 0.5, 2, 3 };
    npy_file(c, "x.npy", U8, 4, DIMS(4, 20, 30, 3), count);
    assert_int_equal(data_open(&data, c, &input, 1, "x.npy:layout=nhwc,scale=1/255,mean=0.5,0.25,0.125,std=0.5,2,3"),
                     OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    for (int64_t s = 0; s < 4; s++)
        for (int64_t p = 0; p < 600; p++)
            for (int64_t k = 0; k < 3; k++) {
                const double raw = count(s * 1800 + p * 3 + k);
                const double want = (double)(float)((raw / 255 - mean[k]) / std[k]);
                assert_true(tensor_get_f64(b.values[0], s * 1800 + k * 600 + p) == want);
            }
    data_close(&data);
    assert_int_equal(data_open(&data, c, &input, 1, "x.npy:layout=nhwc,mean=100,std=2"), OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    assert_true(tensor_get_f64(b.values[0], 1) == (3. - 100) / 2);
    data_close(&data);
    unlink("x.npy");
    return OK;
}

static double too_large(int64_t k)
{
    return k == 11 ? 1e30 : 0;
}

static double with_300(int64_t k)
{
    return k == 5 ? 300 : 7;
}

static Status wrong_samples_are_named(void *arg)
{
    static const struct {
        DType from, to;
        double (*value)(int64_t k);
        const char *says;
    } rows[] = {
        { F32, F32, with_nan, "x.npy: sample 5: element 2 is NaN" },
        { F16, F64, with_nan, "x.npy: sample 5: element 2 is NaN" },
        { F32, F16, too_large, "x.npy: sample 3: element 2: 1e+30 does not fit f16" },
        { F64, F32, too_large, NULL },
        { I64, U8, with_300, "x.npy: sample 1: element 2: 300 does not fit u8" },
        { U16, I8, with_300, "x.npy: sample 1: element 2: 300 does not fit i8" },
        { I32, BOOL, with_300, "x.npy: sample 0: element 0: 7 does not fit bool" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        Data data;
        Batch b;
        Status status = OK;
        const DataInput input = input_of(c, "x", rows[i].to, 2, DIMS(2, 3));
        npy_file(c, "x.npy", rows[i].from, 2, DIMS(6, 3), rows[i].value);
        assert_int_equal(data_open(&data, c, &input, 1, "x.npy"), OK);
        for (int64_t k = 0; k < 3 && status == OK; k++)
            status = feed_batch(data.feed, &c->diag, 0, k, &b);
        if (status != (rows[i].says ? INVALID : OK) || (rows[i].says && !strstr(c->last, rows[i].says)))
            data_wrong("row %zu: %d: %s", i, status, c->last);
        data_close(&data);
    }
    unlink("x.npy");
    return OK;
}

static double label(int64_t k)
{
    return k == 41237 ? 1000 : k == 2 ? -100 : (double)(k % 1000);
}

static Status labels_are_checked_at_once(void *arg)
{
    Context *c = arg;
    Data data;
    DataInput input = input_of(c, "y", I64, 1, DIMS(32));
    input.role = DATA_CLASSES;
    input.count = 1000;
    input.ignores = true;
    input.ignored = -100;
    npy_file(c, "y.npy", I32, 1, DIMS(50000), label);
    assert_int_equal(data_open(&data, c, &input, 1, "y.npy"), INVALID);
    assert_string_equal(c->last, "y.npy: sample 41237: class 1000 is outside 0..999\n");
    assert_int_equal(data_open(&data, c, &input, 1, "y.npy:rows=:41237"), OK);
    data_close(&data);
    input.ignores = false;
    assert_int_equal(data_open(&data, c, &input, 1, "y.npy:rows=1:100"), INVALID);
    assert_string_equal(c->last, "y.npy: sample 2: class -100 is outside 0..999\n");
    unlink("y.npy");
    return OK;
}

/* ---- who gets what ---- */

static Status inputs_are_bound(void *arg)
{
    static const struct {
        const char *data, *target, *fill, *says;
        Status status;
    } rows[] = {
        { "x=x.npy", "y.npy", "mask=1", NULL, OK },
        { "x.npy", "y=y.npy", "mask=range", NULL, OK },
        { "mask=x.npy", "y.npy", "x=0.5", NULL, OK },
        { "x=x.npy", "same:x", "mask=1", "x.npy: f32[6,3] does not fit input y i64[batch]", INVALID },
        { "x=x.npy", "y=none", "mask=1", NULL, OK },
        { "x=x.npy", "next", "mask=1", "next wants one input that a token file", USAGE },
        { "x=x.npy", "y.npy", NULL, "inputs without data\n  at: mask f32[batch,3]\n  try: --data mask=FILE.npy",
          USAGE },
        { "x.npy", "y.npy", NULL, "which input is meant: 2 wait for data", USAGE },
        { "xx=x.npy", "y.npy", "mask=1", "no input is called xx", USAGE },
        { "x=x.npy", "y.npy", "musk=1", "no input is called musk", USAGE },
        { "x=x.npy", "y.npy", "x=1", "input x is given twice", USAGE },
        { "x=x.npy", "x=y.npy", "mask=1", "input x is given twice", USAGE },
        { "x=x.npy", "short.npy", "mask=1", "short.npy: 5 samples, x.npy has 6", INVALID },
        { "x=x.npy:rows=:5", "short.npy", "mask=1", NULL, OK },
        { "x=x.npy", "same:z", "mask=1", "no input is called z", USAGE },
        { "x=x.npy", "y.npy:scale=2", "mask=1", "scale, mean and std make fractions: input y holds i64", USAGE },
        { "x=-", "y.npy", "mask=1", "a stream cannot run beside files", USAGE },
        { "x=-:rows=1:2", "y=none", "mask=1", "rows is not for files of the form -", USAGE },
        { "x=none", "none", "mask=1", "no input is fed from a file", USAGE },
        { "x=x.npy", "y=y.npy", "mask=0.5", NULL, OK },
        { "x=x.npy", "labels=y.npy", "mask=1", NULL, OK },
        { "labels=x.npy", "y.npy", "mask=1", "no input is called labels", USAGE },
        { "x=x.npy", "y=y.npy", "y=0.5", "input y is given twice", USAGE },
    };
    Context *c = arg;
    DataInput inputs[] = { input_of(c, "x", F32, 2, DIMS(2, 3)), input_of(c, "y", I64, 1, DIMS(2)),
                           input_of(c, "mask", F32, 2, DIMS(2, 3)) };
    inputs[1].target = true;
    npy_file(c, "x.npy", F32, 2, DIMS(6, 3), number);
    npy_file(c, "y.npy", I64, 1, DIMS(6), number);
    npy_file(c, "short.npy", I64, 1, DIMS(5), number);
    for (size_t i = 0; i < COUNT(rows); i++) {
        Data data = { .limits = LIMITS_DEFAULT };
        DataSpec specs[2];
        DataFill fill;
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--data", rows[i].data, &specs[0]), OK);
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--target", rows[i].target, &specs[1]), OK);
        if (rows[i].fill)
            assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", rows[i].fill, &fill), OK);
        c->last = "";
        const Status status = data_open_specs(&data, c, inputs, 3, 2, specs, rows[i].fill != NULL, &fill);
        if (status != rows[i].status || (rows[i].says && !strstr(c->last, rows[i].says)))
            data_wrong("row %zu: %d: %s", i, status, c->last);
        if (status == OK)
            data_close(&data);
    }
    unlink("x.npy"), unlink("y.npy"), unlink("short.npy");
    return OK;
}

static Status fills_and_copies(void *arg)
{
    Context *c = arg;
    Data data = { .limits = LIMITS_DEFAULT };
    DataInput inputs[] = { input_of(c, "x", F32, 2, DIMS(2, 3)), input_of(c, "copy", F16, 2, DIMS(2, 3)),
                           input_of(c, "at", I64, 2, DIMS(2, 4)), input_of(c, "rate", F32, 0, NULL) };
    DataSpec specs[2];
    DataFill fills[2];
    Batch b;
    inputs[1].target = true;
    npy_file(c, "x.npy", F32, 2, DIMS(5, 3), number);
    assert_int_equal(data_spec_read(&c->diag, &c->arena, "--data", "x=x.npy:scale=2", &specs[0]), OK);
    assert_int_equal(data_spec_read(&c->diag, &c->arena, "--target", "same:x", &specs[1]), OK);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "at=range", &fills[0]), OK);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "rate=0.5", &fills[1]), OK);
    data.order.last = FEED_KEEP;
    assert_int_equal(data_open_specs(&data, c, inputs, 4, 2, specs, 2, fills), OK);
    assert_int_equal(feed_batches(data.feed), 3);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 2, &b), OK);
    assert_true(b.rows == 1 && b.valid == 1 && b.samples[0] == 4);
    assert_string_equal(type_text(&c->arena, b.values[0]->type), "f32[1,3]");
    assert_string_equal(type_text(&c->arena, b.values[2]->type), "i64[1,4]");
    assert_string_equal(type_text(&c->arena, b.values[3]->type), "f32[]");
    assert_true(b.values[0]->bytes == 12 && b.values[2]->bytes == 32);
    for (int64_t i = 0; i < 3; i++) {
        assert_true(tensor_get_f64(b.values[0], i) == (double)(2 * (12 + i)));
        assert_true(tensor_get_f64(b.values[1], i) == (double)(2 * (12 + i)));
    }
    assert_true(tensor_get_i64(b.values[2], 3) == 3 && tensor_get_f64(b.values[3], 0) == 0.5);
    assert_string_equal(dataset_says(data.ds, 1), "f32[5,3] -> f16");
    assert_null(dataset_path(data.ds, 2));
    data_close(&data);
    unlink("x.npy");
    return OK;
}

/* ---- order ---- */

/* What the rows of a batch hold: the sample's number, in an input of one number each. */
static void check_batch(Context *c, Feed *feed, uint64_t epoch, int64_t index, int64_t *seen, int64_t n)
{
    Batch b;
    assert_int_equal(feed_batch(feed, &c->diag, epoch, index, &b), OK);
    assert_true(b.epoch == epoch && b.index == index);
    for (int64_t r = 0; r < b.rows; r++) {
        const int64_t sample = tensor_get_i64(b.values[0], r);
        assert_int_equal(sample, b.samples[r]);
        assert_in_range(sample, 0, n - 1);
        if (r < b.valid)
            seen[sample]++;
    }
}

static Status each_sample_comes_once(void *arg)
{
    Context *c = arg;
    const DataInput input = input_of(c, "x", I64, 1, DIMS(8));
    npy_file(c, "x.npy", I64, 1, DIMS(101), number);
    for (int threads = 1; threads <= 2; threads++)
        for (int last = FEED_DROP; last <= FEED_KEEP; last++)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                Data data = { .limits = LIMITS_DEFAULT,
                              .order = { .shuffle = shuffle, .last = (FeedLast)last, .seed = 5, .threads = threads } };
                int64_t seen[101] = { 0 }, sum = 0;
                assert_int_equal(data_open_limited(&data, c, &input, 1, "x.npy"), OK);
                const int64_t batches = feed_batches(data.feed);
                assert_int_equal(batches, last == FEED_DROP ? 12 : 13);
                assert_int_equal(feed_dropped(data.feed), last == FEED_DROP ? 5 : 0);
                for (uint64_t epoch = 0; epoch < 3; epoch++)
                    for (int64_t i = 0; i < batches; i++)
                        check_batch(c, data.feed, epoch, i, seen, 101);
                for (int k = 0; k < 101; k++) {
                    sum += seen[k];
                    assert_in_range(seen[k], last == FEED_DROP ? 0 : 3, 3);
                }
                assert_int_equal(sum, 3 * (last == FEED_DROP ? 96 : 101));
                data_close(&data);
            }
    unlink("x.npy");
    return OK;
}

/* A batch depends on its address alone: whatever was asked before, with and without a thread. */
static Status batches_have_addresses(void *arg)
{
    Context *c = arg;
    const DataInput input = input_of(c, "x", I64, 1, DIMS(7));
    int64_t want[3][7][7];
    npy_file(c, "x.npy", I64, 1, DIMS(50), number);
    for (int threads = 1; threads <= 2; threads++) {
        Data data = { .limits = LIMITS_DEFAULT, .order = { .shuffle = true, .seed = 9, .threads = threads } };
        Batch b;
        assert_int_equal(data_open_limited(&data, c, &input, 1, "x.npy"), OK);
        for (int e = 0; threads == 1 && e < 3; e++)
            for (int i = 0; i < 7; i++) {
                assert_int_equal(feed_batch(data.feed, &c->diag, (uint64_t)e, i, &b), OK);
                memcpy(want[e][i], b.values[0]->data, sizeof want[e][i]);
            }
        Rng rng = { 1 };
        int e = 0, i = 0;
        for (int k = 0; k < 300; k++) {
            assert_int_equal(feed_batch(data.feed, &c->diag, (uint64_t)e, i, &b), OK);
            assert_memory_equal(b.values[0]->data, want[e][i], sizeof want[e][i]);
            if (rng_below(&rng, 3) == 0 && (i < 6 || e < 2)) { /* the next one beside it */
                Batch next;
                assert_true(feed_next(data.feed, &next));
                assert_memory_equal(next.values[0]->data, want[e + (i == 6)][i == 6 ? 0 : i + 1], sizeof want[e][i]);
                assert_memory_equal(b.values[0]->data, want[e][i], sizeof want[e][i]);
            }
            const bool jump = rng_below(&rng, 4) == 0;
            e = jump || i == 6 ? (int)rng_below(&rng, 3) : e;
            i = jump || i == 6 ? (int)rng_below(&rng, 7) : i + 1;
        }
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 7, &b), USAGE);
        data_close(&data);
    }
    unlink("x.npy");
    return OK;
}

static Status a_split_is_kept_apart(void *arg)
{
    Context *c = arg;
    const DataInput input = input_of(c, "x", I64, 1, DIMS(4));
    Data data = { .limits = LIMITS_DEFAULT,
                  .order = { .part = FEED_TRAIN, .fraction = 0.2, .shuffle = true, .seed = 3, .last = FEED_PAD } };
    Feed *held;
    int64_t seen[50] = { 0 }, before = -1;
    npy_file(c, "x.npy", I64, 1, DIMS(50), number);
    assert_int_equal(data_open_limited(&data, c, &input, 1, "x.npy"), OK);
    const FeedOptions other = { .part = FEED_VALIDATION, .fraction = 0.2, .seed = 3, .last = FEED_PAD, .threads = 2 };
    assert_int_equal(feed_open(&held, data.ds, &c->diag, &other), OK);
    assert_true(feed_samples(data.feed) == 40 && feed_samples(held) == 10 && feed_batches(held) == 3);
    for (int64_t i = 0; i < 10; i++)
        check_batch(c, data.feed, 4, i, seen, 50);
    for (int64_t i = 0; i < 3; i++) {
        Batch b, next;
        check_batch(c, held, 0, i, seen, 50);
        assert_int_equal(feed_batch(held, &c->diag, 0, i, &b), OK);
        assert_true(feed_next(held, &next) && next.index == (i + 1) % 3);
        assert_int_equal(b.valid, i < 2 ? 4 : 2);
        for (int64_t r = 0; r < b.valid; r++) { /* in the order of the file */
            assert_true(b.samples[r] > before);
            before = b.samples[r];
        }
    }
    for (int k = 0; k < 50; k++)
        assert_int_equal(seen[k], 1);
    feed_close(held);
    FeedOptions none = other;
    none.fraction = 0;
    assert_int_equal(feed_open(&held, data.ds, &c->diag, &none), USAGE);
    data_close(&data);
    unlink("x.npy");
    return OK;
}

/* ---- the thread ---- */

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* A large file: its samples are read while batches are used. */
static double nan_in_100(int64_t k)
{
    return k / 50000 == 100 && k % 50000 == 777 ? (double)NAN : (double)(k / 50000);
}

static Status failures_come_with_their_batch(void *arg)
{
    Context *c = arg;
    const DataInput input = input_of(c, "x", F32, 2, DIMS(10, 50000));
    npy_file(c, "x.npy", F32, 2, DIMS(120, 50000), nan_in_100);
    for (int threads = 1; threads <= 2; threads++) {
        Data data = { .limits = LIMITS_DEFAULT, .order = { .threads = threads } };
        Batch b, next;
        const int before = threads_now();
        assert_int_equal(data_open_limited(&data, c, &input, 1, "x.npy"), OK);
        assert_int_equal(threads_now(), before + threads - 1);
        for (int64_t i = 0; i < 12; i++) {
            const size_t errors = c->diag.n_errors;
            assert_int_equal(feed_batch(data.feed, &c->diag, 0, i, &b), i == 10 ? INVALID : OK);
            assert_int_equal(c->diag.n_errors - errors, i == 10);
            assert_int_equal(feed_next(data.feed, &next), i != 9); /* nothing is said before its turn */
            assert_int_equal(c->diag.n_errors - errors, i == 10);
            if (i != 10)
                for (int64_t r = 0; r < 10; r++)
                    assert_true(tensor_get_f64(b.values[0], r * 50000) == (double)(i * 10 + r));
        }
        assert_non_null(strstr(c->last, "x.npy: sample 100: element 777 is NaN\n  try: a file without that sample"));
        assert_int_equal(truncate("x.npy", 10000000), 0);
        assert_int_equal(feed_batch(data.feed, &c->diag, 7, 3, &b), IO);
        assert_non_null(strstr(c->last, "x.npy: has changed: 10000000 bytes, 24000128 when it was opened"));
        data_close(&data);
        assert_int_equal(threads_now(), before);
        if (threads == 1)
            npy_file(c, "x.npy", F32, 2, DIMS(120, 50000), nan_in_100);
    }
    unlink("x.npy");
    return OK;
}

/* A child of fork has no thread to join. */
static Status a_forked_child_can_close(void *arg)
{
    Context *c = arg;
    Data data = { .limits = LIMITS_DEFAULT, .order = { .threads = 2 } };
    Batch b;
    int answer = -1;
    const DataInput input = input_of(c, "x", F32, 1, DIMS(4));
    npy_file(c, "x.npy", F64, 1, DIMS(20), number);
    assert_int_equal(data_open_limited(&data, c, &input, 1, "x.npy"), OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    const pid_t child = fork();
    if (child == 0) {
        data_close(&data);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &answer, 0), child);
    assert_int_equal(answer, 0);
    data_close(&data);
    unlink("x.npy");
    return OK;
}

static Status write_small(void *arg)
{
    npy_file(arg, "x.npy", F64, 1, DIMS(20), number);
    return OK;
}

typedef struct Attempt {
    Context *c;
    Data *data;
} Attempt;

static Status attempt(void *arg)
{
    Attempt *a = arg;
    Batch b;
    const DataInput input = input_of(a->c, "x", F32, 1, DIMS(4));
    a->data->limits = LIMITS_DEFAULT;
    a->data->order.threads = 2;
    TRY(data_open_limited(a->data, a->c, &input, 1, "x.npy"));
    TRY(feed_batch(a->data->feed, &a->c->diag, 0, 0, &b));
    data_close(a->data);
    return OK;
}

/* Each request for memory refused in turn: nothing is left, no thread, no descriptor. */
static void every_refusal_is_survived(void **state)
{
    (void)state;
    with_context(write_small);
    const int before = threads_now();
    const int next = dup(0);
    close(next);
    bool done = false;
    for (uint64_t at = 1; !done; at++) {
        Context c;
        Data data = { 0 };
        Attempt a = { &c, &data };
        context_open(&c);
        c.memory.fail_at = c.memory.requests + at;
        const Status status = guarded(&c.memory, attempt, &a);
        c.memory.fail_at = 0;
        done = status == OK;
        assert_true(done || status == NO_MEMORY);
        context_close(&c);
        assert_int_equal(threads_now(), before);
        const int now = dup(0);
        close(now);
        assert_int_equal(now, next);
    }
    unlink("x.npy");
}

#define BODIES(_)                                                                                                      \
    _(shapes_fit_or_say_why)                                                                                           \
    _(element_types_fit_or_say_why)                                                                                    \
    _(pictures_are_scaled_and_turned)                                                                                  \
    _(wrong_samples_are_named)                                                                                         \
    _(labels_are_checked_at_once)                                                                                      \
    _(inputs_are_bound)                                                                                                \
    _(fills_and_copies)                                                                                                \
    _(each_sample_comes_once)                                                                                          \
    _(batches_have_addresses)                                                                                          \
    _(a_split_is_kept_apart)                                                                                           \
    _(failures_come_with_their_batch)                                                                                  \
    _(a_forked_child_can_close)

#define BODY(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
BODIES(BODY)

int main(void)
{
#define TEST(name) cmocka_unit_test(test_##name),
    const struct CMUnitTest tests[] = { BODIES(TEST) cmocka_unit_test(every_refusal_is_survived) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
