/* Compiled kernels in a folder: what is kept, and what is made anew. */
#include "support/kernel_compiler.h"

/* ---- what is kept ---- */

static Status kept(void *arg)
{
    Context *c = arg;
    const KernelCache cache = cache_in("a/b/kept");
    const KernelSource s = source_of(TEXTS);
    KernelObjects o;
    size_t files;
    uint64_t bytes;
    assert_false(kernel_cache_size(cache.folder, &c->arena, &files, &bytes));
    assert_int_equal(compile_with(c, &cache, &fake, 2, &s, &o), OBJECTS);
    check_objects(c, &s, &o);
    assert_false(o.list[0].was_kept);
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 0); /* the same files, whatever the threads */
    check_objects(c, &s, &o);
    assert_true(o.list[2].was_kept);
    assert_true(kernel_cache_size(cache.folder, &c->arena, &files, &bytes));
    assert_int_equal(files, OBJECTS);
    assert_true(bytes > OBJECTS * 128);
    assert_int_equal(n_remarks, 0);
    assert_int_equal(count_names(cache.folder, ".tmp-"), 0);
    return OK;
}

static void what_was_compiled_is_kept(void **state)
{
    (void)state;
    with_context(kept);
}

static Status depends(void *arg)
{
    Context *c = arg;
    KernelCache cache = cache_in("depends");
    KernelSource s = source_of(1);
    Nvrtc other = fake;
    KernelObjects o;
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
    cache.version = "2";
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
    other.minor = 1;
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 1);
    s.arch = "sm_90a";
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 1);
    s.prelude = "another";
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 1);
    texts[0] = "another";
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 1);
    s.n = 2;
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 1);
    assert_int_equal(compile_with(c, &cache, &other, 1, &s, &o), 0);
    return OK;
}

static void a_file_is_of_versions_architecture_and_text(void **state)
{
    (void)state;
    with_context(depends);
}

static Status nowhere(void *arg)
{
    Context *c = arg;
    const KernelSource s = source_of(TEXTS), nothing = source_of(0);
    KernelObjects o;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(compile_with(c, &(KernelCache){ .folder = NULL }, &fake, 4, &s, &o), OBJECTS);
        check_objects(c, &s, &o);
        assert_int_equal(n_remarks, 0);
    }
    assert_int_equal(compile_with(c, &(KernelCache){ .folder = NULL }, &fake, 4, &nothing, &o), 0);
    assert_int_equal(o.n, 0);
    return OK;
}

static void without_a_folder_everything_is_compiled(void **state)
{
    (void)state;
    with_context(nowhere);
}

static Status broken(void *arg)
{
    Context *c = arg;
    const KernelCache cache = cache_in("broken");
    const KernelSource s = source_of(TEXTS);
    KernelObjects o;
    texts[KERNEL_TEXTS + 4] = "broken";
    made = ended = 0;
    assert_int_equal(kernels_compile(&cache, &fake, 2, &c->diag, &s, &c->arena, &o), INTERNAL);
    assert_string_equal(c->last, "NVRTC 13.0, kernels: it does not compile\\x0aline 1: broken\n");
    assert_int_equal(made, ended);
    assert_int_equal(count_names(cache.folder, ".cubin"), 1);
    return OK;
}

static void a_text_that_does_not_compile_is_told(void **state)
{
    (void)state;
    with_context(broken);
}

/* ---- damage ---- */

static void write_whole(const char *path, const char *bytes, size_t n)
{
    unlink(path);
    write_bytes(path, bytes, n);
}

static Status damaged(void *arg)
{
    Context *c = arg;
    const KernelCache cache = cache_in("damaged");
    const KernelSource s = source_of(1);
    KernelObjects o;
    char good[512], bad[512];
    compile_with(c, &cache, &fake, 1, &s, &o);
    const char *path = file_of(cache.folder);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(good, 1, sizeof good, f);
    fclose(f);
    for (size_t i = 0; i <= 2 * n; i++) { /* each byte another; each length but its own */
        memcpy(bad, good, n);
        if (i < n)
            bad[i] ^= 16;
        write_whole(path, bad, i < n ? n : i - n + (i == 2 * n));
        assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
        assert_int_equal(n_remarks, 1);
        assert_non_null(strstr(c->last, "is damaged; its kernels are compiled anew"));
        check_objects(c, &s, &o);
        assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 0);
    }
    return OK;
}

static void a_damaged_file_is_made_anew(void **state)
{
    (void)state;
    with_context(damaged);
}

static Status exchanged(void *arg)
{
    Context *c = arg;
    const KernelCache cache = cache_in("exchanged");
    const KernelSource s = source_of(1);
    KernelObjects o;
    char path[600], command[1500];
    compile_with(c, &cache, &fake, 1, &s, &o);
    strcpy(path, file_of(cache.folder));
    texts[0] = "another";
    compile_with(c, &cache, &fake, 1, &s, &o);
    snprintf(command, sizeof command, "for f in %s/*; do cp %s \"$f\" 2>/dev/null; done", cache.folder, path);
    assert_int_not_equal(system(command), -1);
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1); /* whole, but of another text */
    check_objects(c, &s, &o);
    return OK;
}

static void a_file_under_another_name_is_made_anew(void **state)
{
    (void)state;
    with_context(exchanged);
}

static Status obstructed(void *arg)
{
    Context *c = arg;
    const KernelSource s = source_of(TEXTS);
    KernelCache cache = cache_in("obstructed");
    KernelObjects o;
    write_bytes(cache.folder, "x", 1); /* a file, where a folder is wanted */
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), OBJECTS);
    assert_int_equal(n_remarks, 1);
    assert_non_null(strstr(
        c->last, "obstructed: remark: cannot be made a folder: Not a directory; kernels are compiled without it"));
    cache.folder = in_folder("obstructed/below");
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), OBJECTS);
    assert_int_equal(n_remarks, 1);
    cache = cache_in("linked");
    compile_with(c, &cache, &fake, 1, &s, &o);
    char path[600];
    strcpy(path, file_of(cache.folder));
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0); /* a folder, where a file is wanted */
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
    check_objects(c, &s, &o);
    assert_true(n_remarks >= 1);
    return OK;
}

static void what_stands_in_the_way_costs_time_alone(void **state)
{
    (void)state;
    with_context(obstructed);
}

static int setup(void **state)
{
    (void)state;
    return folder_open();
}

static int teardown(void **state)
{
    (void)state;
    return folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_compiled_is_kept),
        cmocka_unit_test(a_file_is_of_versions_architecture_and_text),
        cmocka_unit_test(without_a_folder_everything_is_compiled),
        cmocka_unit_test(a_text_that_does_not_compile_is_told),
        cmocka_unit_test(a_damaged_file_is_made_anew),
        cmocka_unit_test(a_file_under_another_name_is_made_anew),
        cmocka_unit_test(what_stands_in_the_way_costs_time_alone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
