/* Checkpoints: what is saved is what is loaded, and everything else is refused with the name of the file and the
 * reason. */
#include "support/checkpoints.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/write/npz.h"

static Status round_trip(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    CheckpointLoaded l;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    assert_int_equal(load_step(c, folder, 100), 0);
    assert_int_equal(open_target(c, &t, folder, run_a, 0, &disk_real), OK);
    assert_int_equal(save_at(c, &t, 500, 100, false), OK);
    assert_int_equal(load_step(c, folder, 100), 500);
    checkpoint_close(&t);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 500, 100, false), OK);
    checkpoint_close(&t);
    const Str a = whole_file(c, step_path(c, folder, 500)), b = whole_file(c, one);
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

static Status into_text(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static Status out_of_text(const SafeBytes *b, Diag *d, uint64_t offset, void *out, size_t n)
{
    (void)d;
    memcpy(out, (const char *)b->user + offset, n);
    return OK;
}

/* Bytes that never see a disk are those of the file. */
static Status without_files(void *arg)
{
    Context *c = arg;
    Text t;
    CheckpointTarget target;
    CheckpointLoaded l;
    CheckpointInfo info = info_at(9);
    const Limits limits = LIMITS_DEFAULT;
    const CheckpointReader reader = { &c->ir.types, &c->heap, &c->arena, &c->diag, &limits };
    const char *folder = new_folder(c);
    info.run = run_a;
    text_open(&t, &c->arena);
    assert_int_equal(
        checkpoint_put((Sink){ into_text, &t }, &c->memory, &c->diag, &info, states_at(c, 9, 10), N_STATES), OK);
    assert_int_equal(open_target(c, &target, folder, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &target, 9, 10, false), OK);
    checkpoint_close(&target);
    assert_true(str_equal((Str){ t.p, t.n }, whole_file(c, step_path(c, folder, 9))));
    const SafeBytes bytes = { "memory", t.n, out_of_text, t.p };
    const StateSlot some = { "qcc.step", NULL, type_scalar(&c->ir.types, I64), false };
    const CheckpointWanted wanted = { .slots = &some, .n = 1, .others = true };
    assert_int_equal(checkpoint_get(&reader, &bytes, &wanted, &l), OK);
    assert_true(l.info.step == 9 && tensor_get_i64(l.states[0], 0) == 70);
    t.p[t.n - 1] ^= 1;
    assert_int_equal(checkpoint_get(&reader, &bytes, &wanted, &l), INVALID);
    assert_string_equal(c->last, "memory: its bytes are not those that were written (sha256 differs)\n");
    remove_folder(folder);
    return OK;
}

/* ---- the scale of a loss ---- */

static NamedTensor scale_state(Context *c, const char *name, DType dtype, int rank, int64_t n)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, dtype, rank, &n));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_i64(t, i, dtype == F32 ? 1024 : 100 + i);
    return (NamedTensor){ name, t };
}

/* Loads what `n` of the states make up as a file; wanted are w, and a scale where `scaled` says so. */
static Status load_scale(Context *c, const NamedTensor *states, size_t n, bool scaled, bool fresh, CheckpointLoaded *l)
{
    Text t;
    const Limits limits = LIMITS_DEFAULT;
    CheckpointInfo info = info_at(3);
    info.run = run_a;
    text_open(&t, &c->arena);
    assert_int_equal(checkpoint_put((Sink){ into_text, &t }, &c->memory, &c->diag, &info, states, n), OK);
    StateSlot *slots = NEWS(&c->arena, StateSlot, 3);
    slots[0] = (StateSlot){ "w", NULL, type_scalar(&c->ir.types, F32), false };
    slots[1] =
        (StateSlot){ .name = "qcc.scale", .type = type_scalar(&c->ir.types, F32), .mark = { STATE_scaler, NULL } };
    slots[2] = (StateSlot){ .name = "qcc.scaler",
                            .type = type_vector(&c->ir.types, I64, 8),
                            .mark = { STATE_scaler, "qcc.scale" } };
    const CheckpointReader reader = { &c->ir.types, &c->heap, &c->arena, &c->diag, &limits };
    const CheckpointWanted wanted = { .slots = slots, .n = scaled ? 3 : 1, .fresh_scale = fresh };
    return checkpoint_get(&reader, &(SafeBytes){ "file", t.n, out_of_text, t.p }, &wanted, l);
}

static const Tensor *kept_state(const CheckpointLoaded *l, const char *name)
{
    for (size_t i = 0; i < l->n_kept; i++)
        if (strcmp(l->kept[i].name, name) == 0)
            return l->kept[i].tensor;
    assert_true(false);
    return NULL;
}

/* A run may go on with a scale that it had, begin one when told to, keep one that it does not use, and keep counters
 * that a later version wrote. */
static Status scales(void *arg)
{
    Context *c = arg;
    CheckpointLoaded l;
    NamedTensor all[] = { scale_state(c, "w", F32, 0, 0), scale_state(c, "qcc.scale", F32, 0, 0),
                          scale_state(c, "qcc.scaler", I64, 1, 8) };
    assert_int_equal(load_scale(c, all, 3, true, false, &l), OK);
    assert_true(l.n_kept == 0 && tensor_get_f64(l.states[1], 0) == 1024);
    for (int i = 0; i < 8; i++)
        assert_true(tensor_get_i64(l.states[2], i) == 100 + i);
    assert_int_equal(load_scale(c, all, 1, true, false, &l), USAGE);
    assert_non_null(strstr(c->last, "has no state of a loss scale"));
    assert_int_equal(load_scale(c, all, 2, true, false, &l), USAGE);
    assert_int_equal(load_scale(c, all, 1, true, true, &l), OK);
    assert_true(l.states[0] && !l.states[1] && !l.states[2] && l.n_kept == 0);
    assert_int_equal(load_scale(c, all, 3, false, false, &l), OK);
    assert_true(l.n_kept == 2 && tensor_get_f64(kept_state(&l, "qcc.scale"), 0) == 1024 &&
                tensor_get_i64(kept_state(&l, "qcc.scaler"), 7) == 107);
    all[2] = scale_state(c, "qcc.scaler", I64, 1, 11);
    assert_int_equal(load_scale(c, all, 3, true, false, &l), OK);
    assert_true(l.states[2]->bytes == 64 && tensor_get_i64(l.states[2], 7) == 107 && l.n_kept == 1 &&
                tensor_get_i64(l.kept[0].tensor, 10) == 110);
    all[2] = scale_state(c, "qcc.scaler", I64, 1, 7);
    assert_int_equal(load_scale(c, all, 3, true, false, &l), USAGE);
    all[2] = scale_state(c, "qcc.scaler", I64, 1, 8);
    tensor_set_f64((Tensor *)(uintptr_t)all[1].tensor, 0, 3);
    assert_int_equal(load_scale(c, all, 3, true, false, &l), INVALID);
    assert_non_null(strstr(c->last, "qcc.scale: 3 is no power of two"));
    return OK;
}

/* Shadows that somebody saved are nobody's loss. */
static Status shadows(void *arg)
{
    Context *c = arg;
    CheckpointLoaded l;
    const NamedTensor all[] = { scale_state(c, "w", F32, 0, 0), scale_state(c, "qcc.shadow/w", BF16, 0, 0) };
    assert_int_equal(load_scale(c, all, 2, false, false, &l), OK);
    assert_true(l.states[0] && l.n_kept == 0 && l.report.n_unexpected == 0);
    return OK;
}

/* ---- damage ---- */

static void refuse(Context *c, const char *path, const char *what)
{
    CheckpointLoaded l;
    c->last = "nothing";
    const Status status = load_from(c, path, 10, &l);
    check_that(status == INVALID || status == USAGE, "%s is accepted", what);
    check_that(!l.file && strncmp(c->last, path, strlen(path)) == 0, "%s: %s", what, c->last);
}

/* Every byte changed, every length but the right one. */
static Status every_byte_counts(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 7, 10, false), OK);
    checkpoint_close(&t);
    const Str bytes = whole_file(c, one);
    char *copy = arena_copy(&c->arena, bytes.p, bytes.n + 1);
    for (size_t i = 0; i < bytes.n; i++) {
        copy[i] ^= (char)(1 << i % 8);
        put_bytes(one, copy, bytes.n);
        refuse(c, one, arena_printf(&c->arena, "byte %zu changed", i));
        copy[i] ^= (char)(1 << i % 8);
    }
    for (size_t n = 0; n <= bytes.n + 1; n += n == bytes.n - 1 ? 2 : 1) {
        put_bytes(one, copy, n);
        refuse(c, one, arena_printf(&c->arena, "%zu of %zu bytes", n, bytes.n));
    }
    put_bytes(one, bytes.p, bytes.n);
    assert_int_equal(load_step(c, one, 10), 7);
    remove_folder(folder);
    return OK;
}

static Status falls_back(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    CheckpointLoaded l;
    const char *folder = new_folder(c);
    assert_int_equal(open_target(c, &t, folder, run_a, 0, NULL), OK);
    for (uint64_t step = 9900; step <= 10100; step += 100)
        assert_int_equal(save_at(c, &t, step, 10, false), OK);
    checkpoint_close(&t);
    assert_int_equal(load_step(c, folder, 10), 10100);
    damage(c, step_path(c, folder, 10100));
    assert_int_equal(load_step(c, folder, 10), 10000); /* a larger number, a smaller string */
    assert_string_equal(c->last,
                        arena_printf(&c->arena,
                                     "%s: warning: its bytes are not those that were written (sha256 differs): "
                                     "passed over for %s\n",
                                     step_path(c, folder, 10100), step_path(c, folder, 10000)));
    assert_int_equal(rename(step_path(c, folder, 10000), step_path(c, folder, 10300)), 0);
    assert_int_equal(load_step(c, folder, 10), 9900);
    damage(c, step_path(c, folder, 9900));
    assert_int_equal(load_from(c, folder, 10, &l), INVALID);
    assert_null(l.file);
    assert_string_equal(c->last, arena_printf(&c->arena,
                                              "%s: none of its 3 checkpoints is whole\n"
                                              "  at: %s: its name says step 10300, it says 10000, "
                                              "%s: its bytes are not those that were written (sha256 differs), "
                                              "%s: its bytes are not those that were written (sha256 differs)\n",
                                              folder, step_path(c, folder, 10300), step_path(c, folder, 10100),
                                              step_path(c, folder, 9900)));
    remove_folder(folder);
    return OK;
}

/* ---- what does not fit ---- */

static Status wants(Context *c, const char *path, const char *model, const char *step, const StateSlot *slots, size_t n)
{
    CheckpointLoaded l;
    const Limits limits = LIMITS_DEFAULT;
    return checkpoint_load(&(CheckpointReader){ &c->ir.types, &c->heap, &c->arena, &c->diag, &limits }, path,
                           &(CheckpointWanted){ .model_hash = model, .step_hash = step, .slots = slots, .n = n }, &l);
}

static Status misfits(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    const Type *f64s = type_vector(&c->ir.types, F64, 9), *f32s = type_vector(&c->ir.types, F32, 10);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(save_at(c, &t, 7, 10, false), OK);
    checkpoint_close(&t);
    assert_int_equal(wants(c, one, "another", "step", NULL, 0), USAGE);
    assert_string_equal(c->last, arena_printf(&c->arena,
                                              "%s: was saved by a run of another model: model, another wanted\n"
                                              "  at: saved by a run with --lr 0.1\n",
                                              one));
    assert_int_equal(wants(c, one, "model", "other", NULL, 0), USAGE);
    assert_non_null(strstr(c->last, "was saved by a step compiled with other options: step, other wanted"));
    const StateSlot slots[] = { { "w.a", NULL, f64s, false },
                                { "w.c", NULL, f32s, false },
                                { "mask\n\"\xc3\xa9\"", NULL, f32s, false } };
    assert_int_equal(wants(c, one, NULL, NULL, slots, COUNT(slots)), USAGE);
    assert_string_equal(c->last,
                        arena_printf(&c->arena,
                                     "%s: does not fit this step: 0 states match, 1 are missing, 3 unexpected, "
                                     "2 misshapen\n"
                                     "  at: w.a is f64[10] and not f64[9], mask\\x0a\"\xc3\xa9\" is bool[10] and not "
                                     "f32[10], w.c is missing, qcc.step is unexpected, w.b is unexpected, "
                                     "four is unexpected\n"
                                     "  try: --init %s to take the weights alone\n",
                                     one, one));
    CheckpointLoaded l;
    const Limits limits = LIMITS_DEFAULT;
    const StateSlot some = { "w.a", NULL, type_vector(&c->ir.types, F64, 10), false };
    const CheckpointWanted part = { .model_hash = "model", .slots = &some, .n = 1, .others = true };
    assert_int_equal(
        checkpoint_load(&(CheckpointReader){ &c->ir.types, &c->heap, &c->arena, &c->diag, &limits }, one, &part, &l),
        OK);
    assert_true(l.report.n_matched == 1 && tensor_get_f64(l.states[0], 9) == 9 * 7 + 9);
    put_bytes(one, "\x10\0\0\0\0\0\0\0{\"__metadata__\":{}}", 27);
    refuse(c, one, "a header that ends too late");
    put_bytes(one, "\x13\0\0\0\0\0\0\0{\"__metadata__\":{}}", 27);
    refuse(c, one, "no checkpoint");
    assert_non_null(strstr(c->last, "is a safetensors file, but no checkpoint"));
    remove_folder(folder);
    return OK;
}

/* ---- folders ---- */

static Status one_writer(void *arg)
{
    Context *c = arg;
    CheckpointTarget a, b;
    const char *folder = new_folder(c), *inner = arena_printf(&c->arena, "%s/run", folder);
    assert_int_equal(open_target(c, &a, inner, run_a, 2, NULL), OK);
    assert_int_equal(open_target(c, &b, inner, run_b, 2, NULL), IO);
    assert_string_equal(c->last, arena_printf(&c->arena, "%s/.qcc-lock: process %ld is writing to this folder\n", inner,
                                              (long)getpid()));
    assert_int_equal(save_at(c, &a, 10, 10, true), OK);
    checkpoint_close(&a);
    assert_int_equal(open_target(c, &b, inner, run_b, 2, NULL), OK);
    assert_int_equal(save_at(c, &b, 10, 10, false), OK); /* the name is another run's */
    assert_int_equal(access(arena_printf(&c->arena, "%s/step-00000010-%s.safetensors", inner, run_b), F_OK), 0);
    assert_int_equal(save_at(c, &b, 10, 10, false), OK);
    assert_int_equal(save_at(c, &b, 5, 10, false), OK);
    checkpoint_close(&b);
    assert_int_equal(load_step(c, inner, 10), 10);
    assert_int_equal(load_step(c, arena_printf(&c->arena, "%s/last", inner), 10), 5);
    assert_int_equal(load_step(c, arena_printf(&c->arena, "%s/best", inner), 10), 10);
    const CheckpointWish wish = { .path = inner, .run = run_b, .fresh = true };
    assert_int_equal(checkpoint_open(&b, &c->memory, &c->diag, &wish), USAGE);
    assert_string_equal(c->last,
                        arena_printf(&c->arena,
                                     "%s: holds checkpoints of a run already, up to step 10\n"
                                     "  try: --resume\n  try: --checkpoint another folder\n  try: --overwrite\n",
                                     inner));
    remove_folder(inner);
    remove_folder(folder);
    assert_int_equal(open_target(c, &a, inner, run_a, 2, NULL), IO); /* its parent is gone */
    return OK;
}

/* What another run saved stays, also where it came after this one began; with `replaces` it goes, and not before
 * there is something instead. */
static Status replaces_when_it_may(void *arg)
{
    Context *c = arg;
    CheckpointTarget a, b;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder),
               *run = arena_printf(&c->arena, "%s/run", folder),
               *old = file_in(&c->arena, run, "step-00000009.safetensors");
    const CheckpointWish fresh = { .path = one, .run = run_a, .fresh = true },
                         replaces = { .path = run, .run = run_a, .replaces = true };
    assert_int_equal(checkpoint_open(&a, &c->memory, &c->diag, &fresh), OK);
    assert_int_equal(open_target(c, &b, one, run_b, 0, NULL), OK);
    assert_int_equal(save_at(c, &b, 5, 10, false), OK);
    assert_int_equal(save_at(c, &a, 1, 10, false), IO);
    assert_non_null(strstr(c->last, "another run has written it meanwhile"));
    assert_int_equal(load_step(c, one, 10), 5);
    assert_int_equal(remove(one), 0);
    assert_int_equal(save_at(c, &a, 1, 10, false), OK);
    assert_int_equal(save_at(c, &a, 2, 10, false), OK); /* its own */
    checkpoint_close(&a);
    checkpoint_close(&b);
    assert_int_equal(checkpoint_open(&a, &c->memory, &c->diag, &fresh), USAGE);
    assert_non_null(strstr(c->last, "holds the states of a run already, up to step 2"));
    assert_int_equal(load_step(c, one, 10), 2);

    assert_int_equal(open_target(c, &b, run, run_b, 0, NULL), OK);
    assert_int_equal(save_at(c, &b, 1, 10, false), OK);
    assert_int_equal(save_at(c, &b, 9, 10, true), OK);
    checkpoint_close(&b);
    assert_int_equal(checkpoint_open(&a, &c->memory, &c->diag, &replaces), OK);
    assert_int_equal(load_step(c, run, 10), 9);
    assert_int_equal(save_at(c, &a, 1, 10, false), OK);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(load_step(c, run, 10), 1);
    assert_int_equal(save_at(c, &a, 2, 10, false), OK);
    assert_int_equal(load_step(c, run, 10), 2);
    checkpoint_close(&a);
    remove_folder(run);
    remove_folder(folder);
    return OK;
}

static Status clears_what_was_left(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    static const char *const left[] = { "step-00000001.safetensors.tmp-999999999-0", "last.tmp-1-0", "best.tmp-77-0",
                                        "one.safetensors.tmp-999999999-3" };
    static const char *const foreign[] = { "notes.tmp-999999999-0", "one.safetensors.tmp-1-0", "last.tmp-x-0",
                                           "step-1.safetensors.tmp-2-0x", "step-.safetensors.tmp-2-0" };
    for (size_t i = 0; i < COUNT(left); i++)
        put_bytes(arena_printf(&c->arena, "%s/%s", folder, left[i]), "x", 1);
    for (size_t i = 0; i < COUNT(foreign); i++)
        put_bytes(arena_printf(&c->arena, "%s/%s", folder, foreign[i]), "x", 1);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    checkpoint_close(&t);
    assert_int_equal(count_names(folder), COUNT(left) - 1 + COUNT(foreign));
    assert_int_equal(open_target(c, &t, folder, run_a, 0, NULL), OK);
    checkpoint_close(&t);
    assert_int_equal(count_names(folder), COUNT(foreign) + 1);
    for (size_t i = 0; i < COUNT(foreign); i++)
        assert_int_equal(access(arena_printf(&c->arena, "%s/%s", folder, foreign[i]), F_OK), 0);
    remove_folder(folder);
    return OK;
}

/* ---- weights alone ---- */

static Status initial_weights(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    CheckpointSaved saved;
    StateReport report;
    Text text;
    Tensor *states[4];
    const Limits limits = LIMITS_DEFAULT;
    const CheckpointReader reader = { &c->ir.types, &c->heap, &c->arena, &c->diag, &limits };
    const char *folder = new_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    const Type *f32s = type_vector(&c->ir.types, F32, 3), *bf16s = type_vector(&c->ir.types, BF16, 3);
    const Tensor *half = tensor_new(&c->arena, bf16s), *full = tensor_new(&c->arena, f32s);
    tensor_set_f64((Tensor *)half, 1, 1.5);
    tensor_set_f64((Tensor *)full, 2, 2.5);
    const NamedTensor stored[] = {
        { "layer1.weight", half }, { "bias", full }, { "odd", full }, { "qcc.m/bias", full }, { "short", full }
    };
    const CheckpointInfo info = info_at(1);
    assert_int_equal(open_target(c, &t, one, run_a, 0, NULL), OK);
    assert_int_equal(checkpoint_save(&t, &c->arena, &info, stored, COUNT(stored), false, &saved), OK);
    checkpoint_close(&t);
    const StateSlot slots[] = { { "onnx::Conv_193", "layer1.weight", f32s, false },
                                { "bias", "layer1.bias", f32s, false },
                                { "other", NULL, f32s, false },
                                { "short", NULL, type_vector(&c->ir.types, F32, 2), false } };
    assert_int_equal(checkpoint_init(&reader, one, slots, COUNT(slots), states, &report), OK);
    assert_true(tensor_get_f64(states[0], 1) == 1.5 && states[0]->type == f32s);
    assert_true(tensor_get_f64(states[1], 2) == 2.5);
    assert_true(!states[2] && !states[3]);
    text_open(&text, &c->arena);
    state_report_print(&text, &report);
    assert_string_equal(text_get(&text), "  matched     2, 1 of them converted\n"
                                         "  missing     other\n"
                                         "  unexpected  odd\n"
                                         "  misshapen   short is f32[3] and not f32[2]\n");
    assert_int_equal(checkpoint_init(&reader, one, slots + 2, 2, states, &report), INVALID);
    Text npz;
    text_open(&npz, &c->arena);
    assert_int_equal(npz_write(&c->arena, (Sink){ into_text, &npz }, stored, 4), OK);
    put_bytes(one, npz.p, npz.n);
    const StateSlot same[] = { { "odd", NULL, f32s, false },
                               { "bias", NULL, type_vector(&c->ir.types, F64, 3), false } };
    assert_int_equal(checkpoint_init(&reader, one, same, COUNT(same), states, &report), OK);
    assert_true(tensor_get_f64(states[0], 2) == 2.5 && tensor_get_f64(states[1], 2) == 2.5);
    assert_true(states[1]->type == same[1].type && report.n_matched == 2 && report.n_converted == 1);
    npz.p[npz.n / 2] ^= 1;
    put_bytes(one, npz.p, npz.n);
    assert_int_equal(checkpoint_init(&reader, one, same, COUNT(same), states, &report), INVALID);
    put_bytes(one, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 8);
    assert_int_equal(checkpoint_init(&reader, one, same, COUNT(same), states, &report), INVALID);
    assert_non_null(strstr(c->last, "was saved by torch.save"));
    for (size_t n = 0; n < 4; n++) {
        put_bytes(one, "PK\3\4", n);
        assert_int_equal(checkpoint_init(&reader, one, same, COUNT(same), states, &report), INVALID);
    }
    remove_folder(folder);
    return OK;
}

/* A layer of two directions: blocks of gates go where our order has them; without one of the pieces nothing is put. */
static Status pieces_become_a_state(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    CheckpointSaved saved;
    StateReport report;
    Tensor *states[1];
    Text npz;
    const Limits limits = LIMITS_DEFAULT;
    const CheckpointReader reader = { &c->ir.types, &c->heap, &c->arena, &c->diag, &limits };
    const char *folder = new_folder(c), *path = arena_printf(&c->arena, "%s/w.npz", folder);
    const Type *piece = type_tensor(&c->ir.types, F32, 2, (int64_t[]){ 3, 2 });
    const Type *whole = type_tensor(&c->ir.types, F32, 3, (int64_t[]){ 2, 3, 2 });
    Tensor *forward = tensor_new(&c->arena, piece), *reverse = tensor_new(&c->arena, piece);
    for (int64_t i = 0; i < 6; i++) {
        tensor_set_f64(forward, i, (double)i);
        tensor_set_f64(reverse, i, (double)(10 + i));
    }
    const GatePiece pieces[] = { { "w", 0 }, { "w_reverse", 6 } };
    const int order[] = { 1, 0, 2 };
    const StateGates gates = { pieces, 2, piece, 3, order };
    const StateSlot slots[] = { { .name = "w+w_reverse", .type = whole, .own_order = true, .pieces = &gates },
                                { .name = "other", .type = piece } };
    const NamedTensor stored[] = { { "w_reverse", reverse }, { "other", forward }, { "w", forward } };
    for (size_t n = 2; n <= 3; n++) {
        Tensor *both[2];
        text_open(&npz, &c->arena);
        assert_int_equal(npz_write(&c->arena, (Sink){ into_text, &npz }, stored, n), OK);
        put_bytes(path, npz.p, npz.n);
        assert_int_equal(checkpoint_init(&reader, path, slots, 2, both, &report), OK);
        assert_int_equal(report.n_missing, n == 2);
        assert_int_equal(report.n_reordered, n == 3);
        assert_true((both[0] != NULL) == (n == 3) && both[1]);
        states[0] = both[0];
    }
    static const double want[] = { 2, 3, 0, 1, 4, 5, 12, 13, 10, 11, 14, 15 };
    for (int64_t i = 0; i < 12; i++)
        assert_true(tensor_get_f64(states[0], i) == want[i]);
    const CheckpointInfo info = info_at(1);
    const char *ours = arena_printf(&c->arena, "%s/ours.safetensors", folder);
    assert_int_equal(open_target(c, &t, ours, run_a, 0, NULL), OK);
    assert_int_equal(
        checkpoint_save(&t, &c->arena, &info, &(NamedTensor){ "w+w_reverse", states[0] }, 1, false, &saved), OK);
    checkpoint_close(&t);
    assert_int_equal(checkpoint_init(&reader, ours, slots, 1, states, &report), OK);
    assert_true(report.n_reordered == 0 && tensor_get_f64(states[0], 0) == 2);
    remove_folder(folder);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(round_trip)
TEST(without_files)
TEST(every_byte_counts)
TEST(falls_back)
TEST(misfits)
TEST(one_writer)
TEST(replaces_when_it_may)
TEST(clears_what_was_left)
TEST(initial_weights)
TEST(pieces_become_a_state)
TEST(scales)
TEST(shadows)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_without_files),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_falls_back),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_one_writer),
        cmocka_unit_test(test_replaces_when_it_may),
        cmocka_unit_test(test_clears_what_was_left),
        cmocka_unit_test(test_initial_weights),
        cmocka_unit_test(test_pieces_become_a_state),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_shadows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
