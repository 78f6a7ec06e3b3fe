#include "support/checkpoint_trials.h"

#include <stdlib.h>
#include <unistd.h>

#include "support/crashes.h"

typedef struct Watch {
    Context *c;
    const char *path, *folder;
    uint64_t old, new;
    int64_t width;
    int calls;      /* of the whole save */
    int least;      /* whole files in a folder */
    int violations; /* where they are counted and not fatal */
    bool fatal;
    int found_old, found_new;
} Watch;

static int whole_files(const Watch *w)
{
    int n = 0;
    for (uint64_t step = 100; step <= 500; step += 100) {
        CheckpointLoaded l;
        const char *path = step_path(w->c, w->folder, step);
        if (access(path, F_OK) != 0 || load_from(w->c, path, w->width, &l) != OK)
            continue;
        n++;
        for (int i = 0; i < N_STATES; i++)
            tensor_drop(&w->c->heap, l.states[i]);
    }
    return n;
}

static void look(void *user, int calls)
{
    Watch *w = user;
    CheckpointLoaded l;
    Context *c = w->c;
    uint64_t step = 0;
    if (load_from(c, w->path, w->width, &l) == OK && l.file) {
        step = l.info.step;
        for (int i = 0; i < N_STATES; i++)
            tensor_drop(&c->heap, l.states[i]);
    }
    const bool good = (step == w->old && calls < w->calls) || step == w->new;
    w->violations += !good || (w->least && whole_files(w) < w->least);
    if (w->fatal && w->violations) {
        print_error("after %d of %d calls: step %d, %s\n", calls, w->calls, (int)step, c->last);
        assert_true(good);
        assert_int_equal(w->violations, 0);
    }
    w->found_old += step == w->old;
    w->found_new += step == w->new;
}

static Before file_before(Context *c, const char *folder, const char *name)
{
    const Str bytes = whole_file(c, arena_printf(&c->arena, "%s/%s", folder, name));
    return (Before){ .name = name, .bytes = bytes.p, .n = bytes.n };
}

/* A folder with steps 100, 200 (the best) and 300; the save of 400 is recorded. */
static void record_folder(Context *c, Recorder *r, const char *folder, Before before[5], int64_t width, int keep,
                          bool best)
{
    CheckpointTarget t;
    assert_int_equal(open_target(c, &t, folder, run_a, 3, NULL), OK);
    for (uint64_t step = 100; step <= 300; step += 100)
        assert_int_equal(save_at(c, &t, step, width, step == 200), OK);
    checkpoint_close(&t);
    before[0] = file_before(c, folder, "step-00000100.safetensors");
    before[1] = file_before(c, folder, "step-00000200.safetensors");
    before[2] = file_before(c, folder, "step-00000300.safetensors");
    before[3] = (Before){ .name = "last", .link = "step-00000300.safetensors" };
    before[4] = (Before){ .name = "best", .link = "step-00000200.safetensors" };
    recorder_open(r, &c->arena);
    assert_int_equal(open_target(c, &t, folder, run_a, keep, &r->disk), OK);
    assert_int_equal(save_at(c, &t, 400, width, best), OK);
    checkpoint_close(&t);
}

int crash_folder(Context *c, int64_t width, int keep, bool best)
{
    Recorder r;
    Before before[5];
    const char *folder = new_folder(c), *states = new_memory_folder(c);
    record_folder(c, &r, folder, before, width, keep, best);
    Watch w = { .c = c, .path = states, .folder = states, .width = width, .old = 300, .new = 400, .calls = r.n };
    w.least = 2;
    w.fatal = true;
    const int n = crashes_replay(&r, before, COUNT(before), states, false, look, &w);
    print_message("%d states of %d calls: %d found the old one, %d the new one\n", n, r.n, w.found_old, w.found_new);
    assert_true(w.found_old > 0 && w.found_new > 0 && w.found_old + w.found_new == n);
    remove_folder(folder);
    remove_folder(states);
    return n;
}

int crash_file(Context *c, int64_t width, bool lying, int *n_states)
{
    CheckpointTarget t;
    Recorder r;
    const char *folder = new_folder(c), *states = new_memory_folder(c);
    const char *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 300, width, false), OK);
    checkpoint_close(&t);
    const Before before = file_before(c, folder, "one.safetensors");
    recorder_open(&r, &c->arena);
    assert_int_equal(open_target(c, &t, one, run_a, 0, &r.disk), OK);
    assert_int_equal(save_at(c, &t, 400, width, false), OK);
    checkpoint_close(&t);
    Watch w = { .c = c, .folder = states, .width = width, .old = 300, .new = 400, .calls = r.n, .fatal = !lying };
    w.path = arena_printf(&c->arena, "%s/one.safetensors", states);
    *n_states = crashes_replay(&r, &before, 1, states, lying, look, &w);
    assert_true(w.found_old > 0 && w.found_new > 0);
    remove_folder(folder);
    remove_folder(states);
    return w.violations;
}
