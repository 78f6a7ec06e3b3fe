/* The grammar of --data, --target and --fill. */
#include "testing.h"

#include "runtime/data/spec.h"

static DataSpec read_ok(Context *c, const char *text)
{
    DataSpec s;
    if (data_spec_read(&c->diag, &c->arena, "--data", text, &s) != OK)
        print_error("%s", c->last);
    assert_int_equal(c->diag.n_errors, 0);
    return s;
}

static Status names_and_files(void *arg)
{
    static const struct {
        const char *text, *name, *path, *rest;
    } rows[] = {
        { "x.npy", NULL, "x.npy", "x.npy" },
        { "x=x.npy", "x", "x.npy", "x.npy" },
        { "serving_x:0=x.npy", "serving_x:0", "x.npy", "x.npy" },
        { "/in/x=a/b.npz:key=k", "/in/x", "a/b.npz", "a/b.npz:key=k" },
        { "x.npy:scale=1/255", NULL, "x.npy", "x.npy:scale=1/255" },
        { "x:0=x.npy:scale=1/255,layout=nhwc", "x:0", "x.npy", "x.npy:scale=1/255,layout=nhwc" },
        { "t.bin:u32", NULL, "t.bin", "t.bin:u32" },
        { "odd:name:f32,shape=3", NULL, "odd:name", "odd:name:f32,shape=3" },
        { "odd:name", NULL, "odd:name", "odd:name" },
        { "-", NULL, "-", "-" },
        { "x=-", "x", "-", "-" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const DataSpec s = read_ok(c, rows[i].text);
        assert_int_equal(s.kind, DATA_FILE);
        assert_string_equal(s.path, rows[i].path);
        assert_string_equal(s.text, rows[i].rest);
        assert_int_equal(s.name == NULL, rows[i].name == NULL);
        if (s.name)
            assert_string_equal(s.name, rows[i].name);
    }
    assert_int_equal(read_ok(c, "next").kind, DATA_NEXT);
    assert_int_equal(read_ok(c, "y=none").kind, DATA_NONE);
    const DataSpec same = read_ok(c, "y=same:in:0");
    assert_int_equal(same.kind, DATA_SAME);
    assert_string_equal(same.name, "y");
    assert_string_equal(same.same, "in:0");
    return OK;
}

static Status options(void *arg)
{
    Context *c = arg;
    DataSpec s =
        read_ok(c, "x=x.raw:u8,shape=3x32x32,layout=nhwc,scale=2/255,mean=1,2.5,-3,std=4,5,6,rows=10:,header=16");
    assert_true(data_given(&s, DATA_dtype) && s.dtype == U8);
    assert_true(s.rank == 3 && s.dims[0] == 3 && s.dims[1] == 32 && s.dims[2] == 32);
    assert_true(s.nhwc && s.scale == 2 && s.divisor == 255);
    assert_true(s.n_mean == 3 && s.mean[1] == 2.5 && s.mean[2] == -3 && s.n_std == 3 && s.std[0] == 4);
    assert_true(s.from == 10 && s.to == -1 && s.header == 16);
    s = read_ok(c, "a.csv:column=label,pixel 1,3..9,rows=:7");
    assert_int_equal(s.n_columns, 3);
    assert_string_equal(s.columns[1], "pixel 1");
    assert_string_equal(s.columns[2], "3..9");
    assert_true(s.from == 0 && s.to == 7 && s.header == -1 && s.scale == 1 && s.divisor == 1);
    s = read_ok(c, "e=e.npy:static,rows=:7");
    assert_true(data_given(&s, DATA_static) && s.to == 7 && strcmp(s.path, "e.npy") == 0);
    assert_true(!data_given(&s, DATA_dtype) && strcmp(data_option_name(DATA_static), "static") == 0);
    s = read_ok(c, "e=strange.name:i64,static");
    assert_true(data_given(&s, DATA_static) && data_given(&s, DATA_dtype) && strcmp(s.path, "strange.name") == 0);
    s = read_ok(c, "x=x.npy");
    assert_string_equal(data_spec_with(&c->arena, &s, "x", "layout=nhwc"), "--data x=x.npy:layout=nhwc");
    s = read_ok(c, "x.npy:rows=0:5");
    assert_string_equal(data_spec_with(&c->arena, &s, "x", "layout=nhwc"), "--data x=x.npy:rows=0:5,layout=nhwc");
    return OK;
}

static Status what_is_wrong_is_said(void *arg)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "x.npy:scal=2", "--data: x.npy:scal=2: no option of data is called 'scal'\n  try: scale: a number or" },
        { "x.npy:layout", "'layout'\n  try: layout" },
        { "x.npy:q=1", "no option of data is called 'q'\n" },
        { "x.npy:layout=hwc", "layout wants nhwc (channels last) or nchw: layout=nhwc: got 'hwc'" },
        { "x.npy:shape=3x", "shape wants dimensions" },
        { "x.npy:shape=", "shape wants dimensions" },
        { "x.npy:shape=0x3", "shape wants dimensions" },
        { "x.npy:shape=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "shape wants dimensions" },
        { "x.npy:scale=1/0", "scale wants" },
        { "x.npy:scale=inf", "scale wants" },
        { "x.npy:scale=1/", "scale wants" },
        { "x.npy:std=0", "std wants a number that is not 0" },
        { "x.npy:mean=1,b", "mean wants a number" },
        { "x.npy:rows=5", "rows wants" },
        { "x.npy:rows=5:5", "rows wants" },
        { "x.npy:rows=-1:5", "rows wants" },
        { "x.npy:rows=a:b", "rows wants" },
        { "x.csv:header=-1", "header wants" },
        { "x.csv:column=", "column wants" },
        { "x.npz:key=", "key wants" },
        { "x.npz:key=a,key=b", "key is given twice" },
        { "x.raw:u8,f32", "two element types" },
        { "x.raw:u8,string", "no option of data is called 'string'" },
        { "=x.npy", "names no input" },
        { "x=", "names no file" },
        { "", "names no file" },
        { "y=same:", "names no input" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        DataSpec s;
        c->last = "";
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--data", rows[i].text, &s), USAGE);
        if (!strstr(c->last, rows[i].says))
            print_error("%s: %s", rows[i].text, c->last);
        assert_non_null(strstr(c->last, rows[i].says));
    }
    return OK;
}

static Status fills(void *arg)
{
    Context *c = arg;
    DataFill f;
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "a=b=1", &f), OK);
    assert_string_equal(f.name, "a=b");
    assert_true(f.whole && f.integer == 1 && f.value == 1 && !f.range);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "x=-0.5", &f), OK);
    assert_true(!f.whole && f.value == -0.5);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "position_ids=range", &f), OK);
    assert_true(f.range);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "x", &f), USAGE);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "=1", &f), USAGE);
    assert_int_equal(data_fill_read(&c->diag, &c->arena, "--fill", "x=one", &f), USAGE);
    return OK;
}

#define BODY(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
BODY(names_and_files)
BODY(options)
BODY(what_is_wrong_is_said)
BODY(fills)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_files),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_fills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
