/* Weights beside a model: where they go when it is written to another folder, or is too large for one file. */
#include <sys/stat.h>
#include <unistd.h>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "support/pairs.h"
#include "support/step_texts.h"

enum { LARGE = PAIR_LARGE };

static const char *folder_of(Context *c, const char *name)
{
    return pair_folder(c, name, false);
}

static Str whole(Context *c, const char *path)
{
    Str bytes = { 0 };
    assert_non_null(path);
    assert_int_equal(file_read(&c->arena, &c->diag, path, 1 << 24, "model_bytes", &bytes), OK);
    return bytes;
}

/* Writes it so that everything lies beside. */
static const char *write_apart(Context *c, const char *folder)
{
    const char *path = arena_printf(&c->arena, "%s/m.onnx", folder);
    pair_must(c, pair_write(c, NULL, path, 1, true));
    return path;
}

/* Exports PATH to TO, with `states` (null: none); the status. */
static Status export_to(Context *c, const char *path, const char *to, const TrainedState *states, size_t n,
                        int64_t limit)
{
    Spine s = { 0 };
    Pair p;
    pair_must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, path));
    s.limits.model_bytes = limit;
    pair_open(&p, c, NULL, to);
    const TrainedStates all = { .list = states, .n = n, .weight_file = &p.weight_file };
    const Status status = pair_close(&p, onnx_export_states(&s, &c->diag, &all, &p.sink));
    spine_close(&s);
    return status;
}

static void same_file(Context *c, const char *a, const char *b, bool same)
{
    const Str x = whole(c, a), y = whole(c, b);
    assert_int_equal(x.n == y.n && memcmp(x.p, y.p, x.n) == 0, same);
}

static Status written(void *context)
{
    Context *c = context;
    const char *a = folder_of(c, "a"), *b = folder_of(c, "b");
    const char *first = write_apart(c, a), *second = write_apart(c, b);
    struct stat data;
    assert_int_equal(stat(pair_data(c, first), &data), 0);
    assert_int_equal(data.st_size, 4096 + LARGE * 4); /* each at a multiple of 4096, the small one in the model */
    assert_true(whole(c, first).n < 3000);
    same_file(c, first, second, true);
    same_file(c, pair_data(c, first), pair_data(c, second), true);
    Text all;
    const char *inside = arena_printf(&c->arena, "%s/inside.onnx", b);
    pair_must(c, pair_write(c, NULL, inside, 1, false));
    assert_string_equal(pair_values(c, first), pair_values(c, inside));
    c->ir.limits.model_bytes = 3000; /* without a place beside it the limit holds */
    text_open(&all, &c->arena);
    assert_int_equal(onnx_write(pair_graph(c, 1), &c->diag, &(Sink){ step_append, &all }), UNSUPPORTED);
    assert_string_equal(c->last, "the model is larger than one file may be (limit model_bytes, 3000)\n");
    pair_remove(c, a), pair_remove(c, b);
    return OK;
}

static void a_large_model_has_its_weights_beside(void **state)
{
    (void)state;
    with_context(written);
}

static Status moved(void *context)
{
    Context *c = context;
    const int64_t limit = c->ir.limits.model_bytes;
    const char *a = folder_of(c, "a"), *b = folder_of(c, "b"), *from = write_apart(c, a);
    const char *here = arena_printf(&c->arena, "%s/here.onnx", a), *there = arena_printf(&c->arena, "%s/t.onnx", b);
    pair_must(c, export_to(c, from, here, NULL, 0, limit)); /* the same folder: the same bytes, no file of its own */
    same_file(c, from, here, true);
    assert_null(pair_data(c, here));
    pair_must(c, export_to(c, from, there, NULL, 0, limit)); /* another folder: the weights come along */
    assert_string_equal(pair_values(c, there), pair_values(c, from));
    same_file(c, pair_data(c, there), pair_data(c, from), true);

    Tensor *trained = tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE));
    const TrainedState state = { "b", trained };
    pair_must(c, export_to(c, from, here, &state, 1, limit)); /* what is new lies beside the new file, the rest stays */
    assert_int_equal(whole(c, pair_data(c, here)).n, LARGE * 4);
    assert_non_null(strstr(pair_values(c, here), "\nb 0 0 0"));
    assert_int_equal(strncmp(pair_values(c, here), pair_values(c, from), 500), 0);
    const char *trained_values = pair_values(c, here), *old = pair_data(c, from);
    c->last = NULL;
    pair_must(
        c, export_to(c, from, from, &state, 1, limit)); /* in its own place: what did not change stays where it was */
    assert_string_equal(pair_values(c, from), trained_values);
    assert_null(pair_data(c, from));
    assert_int_equal(access(old, F_OK), 0);
    assert_null(c->last);
    pair_remove(c, a), pair_remove(c, b);
    return OK;
}

static void external_weights_follow_their_model(void **state)
{
    (void)state;
    with_context(moved);
}

static Status grown(void *context)
{
    Context *c = context;
    const char *a = folder_of(c, "a"), *inside = arena_printf(&c->arena, "%s/inside.onnx", a);
    const char *apart = arena_printf(&c->arena, "%s/apart.onnx", a);
    pair_must(c, pair_write(c, NULL, inside, 1, false));
    const TrainedState state = { "l", tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE)) };
    pair_must(c, export_to(c, inside, apart, &state, 1,
                           (int64_t)whole(c, inside).n + 100)); /* an alias becomes a parameter */
    assert_true(whole(c, apart).n < 3000);
    assert_int_equal(whole(c, pair_data(c, apart)).n, 2 * 4096 + LARGE * 4);
    assert_non_null(strstr(pair_values(c, apart), "\nl 0 0 0"));
    assert_int_equal(strncmp(pair_values(c, apart), pair_values(c, inside), 4000), 0);
    pair_remove(c, a);
    return OK;
}

static void an_export_that_is_too_large_moves_its_weights(void **state)
{
    (void)state;
    with_context(grown);
}

/* ---- steps ---- */

static const char step_text[] =
    "graph @step(%x: f32[600], state %a: f32[600] = @blob(\"a\") trained, state %\"qcc.ema/a\": f32[600] = "
    "@blob(\"a\"), state %c: f32[600] = @blob(\"c\")) -> (%loss, %a = %n) {\n"
    "    const %b: f32[600] = @blob(\"b\")\n"
    "    %n: f32[600] = add(%a, %b)\n"
    "    const %i: i64[1] = [0]\n"
    "    %t: f32[600] = mul(%n, %c)\n"
    "    %loss: f32[] = reduce_sum(%t, %i, keepdims=false)\n"
    "}\n"
    "\n"
    "graph @eval(%x: f32[600], state %a: f32[600] = @blob(\"a\")) -> (%y) {\n"
    "    const %b: f32[600] = @blob(\"b\")\n"
    "    %y: f32[600] = add(%a, %b)\n"
    "}\n";

static Payload *param(const Module *m, const char *name)
{
    for (const Node *n = m->graphs[0]->first; n; n = n->next)
        if (n->name && strcmp(n->name, name) == 0)
            return node_payload(n);
    return NULL;
}

static const char *text_with_bytes(Context *c, const Module *m)
{
    Text t;
    text_open(&t, &c->arena);
    pair_must(c, print_module(&t, m, NULL));
    return text_get(&t);
}

/* A step over a model with external weights goes to another folder, with more than one file may hold or not. */
static Status stepped(void *context)
{
    Context *c = context;
    const char *a = folder_of(c, "a"), *b = folder_of(c, "b"), *d = folder_of(c, "d"), *from = write_apart(c, a);
    const char *const places[] = { arena_printf(&c->arena, "%s/s.onnx", a), arena_printf(&c->arena, "%s/s.onnx", b) };
    for (int i = 0; i < 4; i++) {
        Spine s = { 0 }, back = { 0 };
        Module *model, *m, *again;
        Blobs blobs;
        Pair p;
        const char *to = places[i % 2], *out = arena_printf(&c->arena, "%s/out.onnx", d);
        pair_must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, from));
        pair_must(c, onnx_import(&c->ir, &c->arena, &s, NULL, &model));
        blobs_open(&blobs, &c->arena);
        blobs_add(&blobs, param(model, "a"), "a");
        blobs_add(&blobs, param(model, "b"), "b");
        blobs_add(&blobs, payload_of(&c->arena, tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE))), "c");
        pair_must(c, parse_module(&c->ir, &c->arena, str(step_text), "step.qir", &blobs, NULL, &m));
        pair_open(&p, c, NULL, to);
        s.limits.model_bytes = i < 2 ? s.limits.model_bytes : 6000;
        pair_must(c, pair_close(&p, onnx_write_step(&s, m, NULL, &c->diag, &p.sink, &p.weight_file)));
        pair_must(c, spine_open(&back, &c->memory, &c->diag, &c->ir.limits, to));
        pair_must(c, onnx_read_step(&c->ir, &c->arena, &back, &again, NULL));
        assert_string_equal(step_text_of(c, again), step_text_of(c, m));
        assert_string_equal(text_with_bytes(c, again), text_with_bytes(c, m));
        if (i % 2 == 0) /* where it came from the model in front is as it was */
            assert_memory_equal(p.bytes.p, whole(c, from).p, whole(c, from).n);
        assert_int_equal(p.bytes.n < 6000, i >= 2);
        spine_close(&back);
        spine_close(&s);
        pair_must(c, export_to(c, to, out, NULL, 0, c->ir.limits.model_bytes));
        assert_string_equal(pair_values(c, out), pair_values(c, from));
    }
    pair_remove(c, a), pair_remove(c, b), pair_remove(c, d);
    return OK;
}

static void a_step_takes_external_weights_along(void **state)
{
    (void)state;
    with_context(stepped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_model_has_its_weights_beside),
        cmocka_unit_test(external_weights_follow_their_model),
        cmocka_unit_test(an_export_that_is_too_large_moves_its_weights),
        cmocka_unit_test(a_step_takes_external_weights_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
