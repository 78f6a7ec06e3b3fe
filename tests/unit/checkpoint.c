/* Checkpoints: what is saved is what is loaded, and everything else is refused with the name of the file and the
 * reason. */
#include "support/checkpoints.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

static Status round_trip(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    CheckpointLoaded l;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    assert_int_equal(load_step(c, folder, 100), 0);
    assert_int_equal(open_target(c, &t, folder, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 500, 100, false), OK);
    assert_int_equal(load_step(c, folder, 100), 500);
    checkpoint_close(&t);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 500, 100, false), OK);
    checkpoint_close(&t);
    const Str a = bytes_of(c, step_path(c, folder, 500)), b = bytes_of(c, one);
    assert_true(str_equal(a, b));
    assert_int_equal(load_from(c, one, 100, &l), OK);
    assert_string_equal(l.info.run, run_a);
    assert_string_equal(l.info.options, "--lr 0.1");
    assert_true(l.info.seed == UINT64_MAX && l.info.shuffle_key == 77 && l.info.best == 0.1);
    assert_int_equal(l.info.n_properties, 2);
    assert_string_equal(l.info.properties[1].value, "a \"person\"");
    assert_null(l.info.data);
    remove_folder(folder);
    return OK;
}

static void test_round_trip(void **state)
{
    (void)state;
    with_context(round_trip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
