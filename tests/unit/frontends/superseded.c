/* Data of a model that was replaced: it goes when it is ours and nobody reads it, and else a note says why it stays. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontends/onnx/file/superseded.h"
#include "support/pairs.h"
#include "support/step_texts.h"

typedef struct Old {
    Context *c;
    const char *folder, *model, *data, *name; /* of the data */
} Old;

/* A folder with one pair. */
static Old old_pair(Context *c)
{
    Old o = { .c = c, .folder = pair_folder(c, "old", true) };
    o.model = arena_printf(&c->arena, "%s/m.onnx", o.folder);
    pair_must(c, pair_write(c, NULL, o.model, 1, true));
    o.data = pair_data(c, o.model);
    assert_non_null(o.data);
    o.name = strrchr(o.data, '/') + 1;
    c->last = NULL;
    return o;
}

static const char *at(const Old *o, const char *name)
{
    return arena_printf(&o->c->arena, "%s/%s", o->folder, name);
}

static void put(const Old *o, const char *name, const char *bytes)
{
    const int fd = open(at(o, name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
    close(fd);
}

/* Writes another pair over it: whether the old data is still there, and the note. */
static bool stays(const Old *o, const char *note)
{
    struct stat st;
    Context *c = o->c;
    c->last = NULL;
    pair_must(c, pair_write(c, NULL, o->model, 2, true));
    if (note)
        note = arena_printf(&c->arena, "%s: note: data of the model that was here stays\n  at: %s: %s\n", o->model,
                            o->name, note);
    if (note && c->last)
        assert_string_equal(c->last, note);
    assert_int_equal(c->last != NULL, note != NULL);
    assert_non_null(pair_values(c, o->model));
    return lstat(o->data, &st) == 0;
}

/* Once nothing is in the way the next write removes it, and says nothing. */
static void goes_now(Old *o)
{
    assert_false(stays(o, NULL));
    pair_remove(o->c, o->folder);
}

static Status plain(void *arg)
{
    Old o = old_pair(arg);
    goes_now(&o);
    return OK;
}

static void what_nobody_reads_goes(void **state)
{
    (void)state;
    with_context(plain);
}

static Status others(void *arg)
{
    Context *c = arg;
    Old o = old_pair(c);
    assert_int_equal(link(o.model, at(&o, "Other.ONNX")), 0);
    assert_true(stays(&o, "Other.ONNX reads it"));
    unlink(at(&o, "Other.ONNX"));
    goes_now(&o);
    o = old_pair(c);
    put(&o, "bad.onnx", "no model");
    assert_true(stays(&o, "bad.onnx cannot be read, and may read it"));
    unlink(at(&o, "bad.onnx"));
    assert_int_equal(symlink("nowhere", at(&o, "gone.onnx")), 0);
    assert_true(stays(&o, NULL)); /* the model that is replaced now did not read it */
    unlink(at(&o, "gone.onnx"));
    goes_now(&o);
    return OK;
}

static void what_another_model_may_read_stays(void **state)
{
    (void)state;
    with_context(others);
}

static Status many(void *arg)
{
    Context *c = arg;
    Old o = old_pair(c);
    for (int i = 0; i <= SUPERSEDED_MODELS; i++)
        put(&o, arena_printf(&c->arena, "%d.onnx", i), "");
    assert_true(stays(&o, "there are more than 1024 models in the folder"));
    unlink(at(&o, "7.onnx"));
    goes_now(&o);
    return OK;
}

static void so_many_models_are_looked_into(void **state)
{
    (void)state;
    with_context(many);
}

static Status foreign(void *arg)
{
    Context *c = arg;
    Old o = old_pair(c);
    const char *model = o.model;
    o.model = at(&o, "n.onnx");
    assert_int_equal(rename(model, o.model), 0);
    assert_true(stays(&o, "it is not named after this model"));
    pair_remove(c, o.folder);
    o = old_pair(c);
    put(&o, "m.onnx.0123456789abcdef.data", "not what the name says");
    put(&o, "m.onnx.0123456789abcdeF.data", "");
    put(&o, "m.onnx.0123456789abcde.data", "");
    put(&o, "m.onnx.0123456789abcdef.data2", "");
    put(&o, "m.onnx.data", "");
    put(&o, "precious", "");
    assert_int_equal(symlink("precious", at(&o, "m.onnx.aaaaaaaaaaaaaaaa.data")), 0);
    assert_int_equal(mkdir(at(&o, "m.onnx.bbbbbbbbbbbbbbbb.data"), 0700), 0);
    assert_false(stays(&o, NULL));
    assert_string_equal(pair_names(c, o.folder),
                        arena_printf(&c->arena,
                                     "m.onnx m.onnx.0123456789abcde.data m.onnx.0123456789abcdeF.data "
                                     "m.onnx.0123456789abcdef.data m.onnx.0123456789abcdef.data2 %s "
                                     "m.onnx.aaaaaaaaaaaaaaaa.data m.onnx.bbbbbbbbbbbbbbbb.data m.onnx.data precious ",
                                     "m.onnx.41b9936a4f2e3f5f.data"));
    pair_remove(c, o.folder);
    return OK;
}

static void what_is_not_ours_stays(void **state)
{
    (void)state;
    with_context(foreign);
}

static Status damaged(void *arg)
{
    Old o = old_pair(arg);
    const int fd = open(o.data, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_true(stays(&o, "its content is not what its name says"));
    pair_remove(o.c, o.folder);
    return OK;
}

static void what_is_not_what_its_name_says_stays(void **state)
{
    (void)state;
    with_context(damaged);
}

/* Another process has begun to write the same model, or its data. */
static Status busy(void *arg)
{
    Context *c = arg;
    static const char *const temporary[] = { "m.onnx.tmp-999999999-0", "m.onnx.data.tmp-999999999-0" };
    for (size_t i = 0; i < COUNT(temporary); i++) {
        Old o = old_pair(c);
        put(&o, temporary[i], "");
        const int fd = open(at(&o, temporary[i]), O_RDONLY);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        assert_true(stays(&o, "somebody else may be writing here"));
        close(fd);
        goes_now(&o);
    }
    return OK;
}

static void what_somebody_may_be_about_to_name_stays(void **state)
{
    (void)state;
    with_context(busy);
}

static Status export_over(Context *c, Spine *s, const char *path, const TrainedState *states, size_t n)
{
    Pair p;
    pair_open(&p, c, NULL, path);
    const TrainedStates all = { .list = states, .n = n, .weight_file = &p.weight_file };
    return pair_close(&p, onnx_export_states(s, &c->diag, &all, &p.sink));
}

/* A model is trained in its own place, twice: who has it open goes on reading what it was made of. */
static Status in_place(void *arg)
{
    Context *c = arg;
    Spine s = { 0 };
    Old o = old_pair(c);
    Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, F32, PAIR_LARGE));
    const TrainedState all[] = { { "a", t }, { "b", t } };
    pair_must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, o.model));
    for (int i = 1; i <= 2; i++) {
        for (int k = 0; k < PAIR_LARGE; k++)
            tensor_set_f64(t, k, i);
        c->last = NULL;
        pair_must(c, export_over(c, &s, o.model, all, 2));
        if (i == 1)
            assert_non_null(strstr(c->last, arena_printf(&c->arena, "%s: a model that is open reads it", o.name)));
        else
            assert_null(c->last);
        assert_non_null(strstr(pair_values(c, o.model), i == 1 ? "\nb 1 1 1" : "\nb 2 2 2"));
        assert_int_equal(access(o.data, F_OK), 0);
    }
    spine_close(&s);
    goes_now(&o);
    return OK;
}

static void what_an_open_model_reads_stays(void **state)
{
    (void)state;
    with_context(in_place);
}

/* Two writers of different models in one folder wait for each other, and neither takes what is the other's. */
static Status elsewhere(void *arg)
{
    Context *c = arg;
    Old o = old_pair(c);
    const char *n = at(&o, "n.onnx");
    pair_must(c, pair_write(c, NULL, n, 5, true));
    const char *other = pair_data(c, n);
    assert_false(stays(&o, NULL));
    assert_int_equal(access(other, F_OK), 0);
    pair_must(c, pair_write(c, NULL, o.model, 3, false)); /* all inside: nothing is left beside it */
    assert_null(pair_data(c, o.model));
    assert_non_null(pair_values(c, n));
    pair_remove(c, o.folder);
    return OK;
}

static void data_of_other_models_is_theirs(void **state)
{
    (void)state;
    with_context(elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_reads_goes),
        cmocka_unit_test(what_another_model_may_read_stays),
        cmocka_unit_test(so_many_models_are_looked_into),
        cmocka_unit_test(what_is_not_ours_stays),
        cmocka_unit_test(what_is_not_what_its_name_says_stays),
        cmocka_unit_test(what_somebody_may_be_about_to_name_stays),
        cmocka_unit_test(what_an_open_model_reads_stays),
        cmocka_unit_test(data_of_other_models_is_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
