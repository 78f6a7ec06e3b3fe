/* Which files of a run stay in its folder, and what saving them holds. */
#include "support/checkpoints.h"

#include <unistd.h>

#include "base/rng.h"

typedef struct Kept {
    uint64_t step;
    bool own, damaged, there;
} Kept;

/* Two runs in one folder, steps around a change of length, damage here and there: after each save of the first run its
 * newest whole files are there, the best one too, and nothing of the second run has gone. */
static void keep_some(Context *c, uint32_t seed)
{
    Rng rng = { seed };
    enum { MOST = 40 };
    Kept list[MOST] = { { 0 } };
    CheckpointTarget a, b;
    const int keep = (int)rng_below(&rng, 5);
    const int least = keep < CHECKPOINT_KEEP_LEAST ? CHECKPOINT_KEEP_LEAST : keep;
    uint64_t step = 9990, best = 0;
    int n = 0;
    const char *folder = new_folder(c);
    while (n < 12) {
        step += 1 + (uint64_t)rng_below(&rng, 9);
        const bool own = rng_below(&rng, 3) != 0, is_best = own && rng_below(&rng, 4) == 0;
        CheckpointTarget *t = own ? &a : &b;
        assert_int_equal(open_target(c, t, folder, own ? run_a : run_b, own ? keep : 0, NULL), OK);
        CheckpointInfo info = info_at(step);
        CheckpointSaved saved;
        best = info.best_step = is_best ? step : best;
        assert_int_equal(checkpoint_save(t, &c->arena, &info, states_at(c, step, 3), N_STATES, is_best, &saved), OK);
        checkpoint_close(t);
        list[n++] = (Kept){ step, own, false, true };
        int whole = 0;
        for (int i = n - 1; i >= 0; i--) {
            const bool there = access(step_path(c, folder, list[i].step), F_OK) == 0;
            if (!list[i].own || !own || keep == 0 || list[i].step == best)
                check_that(there == list[i].there, "seed %u: step %d", seed, (int)list[i].step);
            else if (whole < least)
                check_that(there == list[i].there, "seed %u: step %d is gone", seed, (int)list[i].step);
            else
                check_that(!there, "seed %u: step %d is still there", seed, (int)list[i].step);
            whole += list[i].own && there && !list[i].damaged;
            list[i].there = there;
        }
        if (rng_below(&rng, 3) == 0) {
            Kept *k = &list[rng_below(&rng, n)];
            if (k->there && !k->damaged) {
                damage(c, step_path(c, folder, k->step));
                k->damaged = true;
            }
        }
    }
    remove_folder(folder);
}

static Status keeping(void *arg)
{
    for (uint32_t seed = 0; seed < 25; seed++)
        keep_some(arg, seed);
    return OK;
}

/* However long a run is, saving holds no more memory and no more descriptors. */
static Status no_growth(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    uint64_t used = 0;
    const char *folder = new_folder(c);
    const NamedTensor *states = states_at(c, 1, 10);
    assert_int_equal(open_target(c, &t, folder, run_a, 3, NULL), OK);
    const int fd = dup(0);
    close(fd);
    for (uint64_t step = 1; step <= 60; step++) {
        CheckpointSaved saved;
        const CheckpointInfo info = info_at(step);
        const ArenaMark mark = arena_mark(&c->arena);
        assert_int_equal(checkpoint_save(&t, &c->arena, &info, states, N_STATES, step == 7, &saved), OK);
        arena_reset(&c->arena, mark);
        if (step == 10)
            used = c->memory.used;
    }
    assert_int_equal(c->memory.used, used);
    assert_int_equal(dup(0), fd);
    close(fd);
    assert_int_equal(count_names(folder), 3 + 3); /* the lock and two links */
    checkpoint_close(&t);
    remove_folder(folder);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(keeping)
TEST(no_growth)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeping),
        cmocka_unit_test(test_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
