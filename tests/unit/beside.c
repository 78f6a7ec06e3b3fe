/* Weights beside a model: where they go when it is written to another folder, or is too large for one file. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "frontends/onnx/write.h"
#include "ir/init.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "support/step_texts.h"

enum { LARGE = 600, SMALL = 8 }; /* elements */

static const char *folder_of(Context *c, const char *name)
{
    const char *path = arena_printf(&c->arena, "%s/beside-test-%d-%s", QCC_BINARY_DIR, (int)getpid(), name);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    return path;
}

static void empty(Context *c, const char *folder)
{
    assert_int_equal(system(arena_printf(&c->arena, "rm -r '%s'", folder)), 0);
}

static Status put_file(Context *c, const char *path, const Text *bytes)
{
    FileOut f;
    TRY(file_create(&f, &c->arena, &c->diag, path));
    TRY(file_write(&f, bytes->p, bytes->n));
    return file_keep(&f);
}

static Str whole(Context *c, const char *path)
{
    Str bytes = { 0 };
    assert_int_equal(file_read(&c->arena, &c->diag, path, 1 << 24, "model_bytes", &bytes), OK);
    return bytes;
}

static void must(Context *c, Status status)
{
    if (status != OK)
        print_error("%s\n", c->last ? c->last : "no message");
    assert_int_equal(status, OK);
}

/* A model of two large parameters, an alias of one, and a small one. */
static Graph *model_graph(Context *c)
{
    Module *m;
    const char *text = arena_printf(&c->arena,
                                    "graph @m(%%x: f32[%d]) -> (%%y) {\n"
                                    "    param %%a: f32[%d] = normal(seed=1)\n"
                                    "    param %%b: f32[%d] = @blob(\"b\")\n"
                                    "    param %%s: f32[%d] = normal(seed=3)\n"
                                    "    param %%l: f32[%d] = @blob(\"b\")\n"
                                    "    %%p: f32[%d] = mul(%%l, %%a)\n"
                                    "    %%q: f32[%d] = add(%%p, %%b)\n"
                                    "    const %%i: i64[1] = [0]\n"
                                    "    %%t: f32[] = reduce_sum(%%s, %%i, keepdims=false)\n"
                                    "    %%y: f32[%d] = add(%%q, %%t)\n"
                                    "}\n",
                                    LARGE, LARGE, LARGE, SMALL, LARGE, LARGE, LARGE, LARGE);
    Blobs blobs;
    const Type *type = type_vector(&c->ir.types, F32, LARGE);
    Payload *drawn = payload_init(&c->arena, type, (Init){ .kind = INIT_NORMAL, .seed = 2, .scale = 1 });
    blobs_open(&blobs, &c->arena);
    blobs_add(&blobs, payload_of(&c->arena, payload_tensor(drawn, &c->arena, &c->diag)), "b");
    must(c, parse_module(&c->ir, &c->arena, str(text), "m.qir", &blobs, NULL, &m));
    return m->graphs[0];
}

/* Writes it so that everything lies beside; the limit stands for 2 GiB. */
static const char *write_apart(Context *c, const char *folder)
{
    Text bytes;
    const char *path = arena_printf(&c->arena, "%s/m.onnx", folder);
    const int64_t limit = c->ir.limits.model_bytes;
    text_open(&bytes, &c->arena);
    c->ir.limits.model_bytes = 3000;
    must(c, onnx_write_named(model_graph(c), &c->diag, NULL, &(Sink){ step_append, &bytes }, path));
    c->ir.limits.model_bytes = limit;
    must(c, put_file(c, path, &bytes));
    return path;
}

/* The values of the parameters, wherever they lie. */
static const char *values(Context *c, const char *path)
{
    Spine s = { 0 };
    Module *m;
    Text text;
    must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, path));
    must(c, onnx_import(&c->ir, &c->arena, &s, NULL, &m));
    text_open(&text, &c->arena);
    for (const Node *n = m->graphs[0]->first; n; n = n->next) {
        const Tensor *t = n->op == OP_param ? payload_tensor(node_payload(n), &c->arena, &c->diag) : NULL;
        if (!t || t->type->dtype != F32)
            continue;
        text_printf(&text, "%s", n->name);
        for (int64_t i = 0; i < tensor_elements(t); i++)
            text_printf(&text, " %.9g", tensor_get_f64(t, i));
        text_char(&text, '\n');
    }
    spine_close(&s);
    return text_get(&text);
}

/* Exports PATH to TO, with `states` (null: none); the status. */
static Status export_to(Context *c, const char *path, const char *to, const FinalState *states, size_t n, int64_t limit)
{
    Spine s = { 0 };
    Text bytes;
    text_open(&bytes, &c->arena);
    must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, path));
    s.limits.model_bytes = limit;
    Status status = onnx_export_states(&s, &c->diag, &(FinalStates){ .list = states, .n = n, .path = to },
                                       &(Sink){ step_append, &bytes });
    spine_close(&s);
    return status == OK ? put_file(c, to, &bytes) : status;
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
    assert_int_equal(stat(arena_printf(&c->arena, "%s.data", first), &data), 0);
    assert_int_equal(data.st_size, 4096 + LARGE * 4); /* each at a multiple of 4096, the small one in the model */
    assert_true(whole(c, first).n < 3000);
    same_file(c, first, second, true);
    same_file(c, arena_printf(&c->arena, "%s.data", first), arena_printf(&c->arena, "%s.data", second), true);
    Text text, all;
    text_open(&text, &c->arena);
    must(c, onnx_write(model_graph(c), &c->diag, &(Sink){ step_append, &text }));
    const char *inside = arena_printf(&c->arena, "%s/inside.onnx", b);
    must(c, put_file(c, inside, &text));
    assert_string_equal(values(c, first), values(c, inside));
    c->ir.limits.model_bytes = 3000; /* without a place beside it the limit holds */
    text_open(&all, &c->arena);
    assert_int_equal(onnx_write(model_graph(c), &c->diag, &(Sink){ step_append, &all }), UNSUPPORTED);
    assert_string_equal(c->last, "the model is larger than one file may be (limit model_bytes, 3000)\n");
    empty(c, a), empty(c, b);
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
    must(c, export_to(c, from, here, NULL, 0, limit)); /* the same folder: the same bytes, no file of its own */
    same_file(c, from, here, true);
    assert_int_equal(access(arena_printf(&c->arena, "%s.data", here), F_OK), -1);
    must(c, export_to(c, from, there, NULL, 0, limit)); /* another folder: the weights come along */
    assert_string_equal(values(c, there), values(c, from));
    same_file(c, arena_printf(&c->arena, "%s.data", there), arena_printf(&c->arena, "%s.data", from), true);

    Tensor *trained = tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE));
    const FinalState state = { "b", trained };
    must(c, export_to(c, from, here, &state, 1, limit)); /* what is new lies beside the new file, the rest stays */
    assert_int_equal(whole(c, arena_printf(&c->arena, "%s.data", here)).n, LARGE * 4);
    assert_non_null(strstr(values(c, here), "\nb 0 0 0"));
    assert_int_equal(strncmp(values(c, here), values(c, from), 500), 0);
    c->last = NULL;
    assert_int_equal(export_to(c, from, arena_printf(&c->arena, "%s/m.onnx", a), &state, 1, limit), USAGE);
    assert_non_null(strstr(c->last, "its weights lie in m.onnx.data, which would be replaced\n  try: another name"));
    empty(c, a), empty(c, b);
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
    Text text;
    text_open(&text, &c->arena);
    must(c, onnx_write(model_graph(c), &c->diag, &(Sink){ step_append, &text }));
    must(c, put_file(c, inside, &text));
    const FinalState state = { "l", tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE)) };
    must(c, export_to(c, inside, apart, &state, 1, (int64_t)text.n + 100)); /* an alias becomes a parameter */
    assert_true(whole(c, apart).n < 3000);
    assert_int_equal(whole(c, arena_printf(&c->arena, "%s.data", apart)).n, 2 * 4096 + LARGE * 4);
    assert_non_null(strstr(values(c, apart), "\nl 0 0 0"));
    assert_int_equal(strncmp(values(c, apart), values(c, inside), 4000), 0);
    empty(c, a);
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
    must(c, print_module(&t, m, NULL));
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
        Text bytes;
        const char *to = places[i % 2], *out = arena_printf(&c->arena, "%s/out.onnx", d);
        must(c, spine_open(&s, &c->memory, &c->diag, &c->ir.limits, from));
        must(c, onnx_import(&c->ir, &c->arena, &s, NULL, &model));
        blobs_open(&blobs, &c->arena);
        blobs_add(&blobs, param(model, "a"), "a");
        blobs_add(&blobs, param(model, "b"), "b");
        blobs_add(&blobs, payload_of(&c->arena, tensor_new(&c->arena, type_vector(&c->ir.types, F32, LARGE))), "c");
        must(c, parse_module(&c->ir, &c->arena, str(step_text), "step.qir", &blobs, NULL, &m));
        text_open(&bytes, &c->arena);
        s.limits.model_bytes = i < 2 ? s.limits.model_bytes : 6000;
        must(c, onnx_write_step(&s, m, NULL, &c->diag, &(Sink){ step_append, &bytes }, to));
        must(c, put_file(c, to, &bytes));
        must(c, spine_open(&back, &c->memory, &c->diag, &c->ir.limits, to));
        must(c, onnx_read_step(&c->ir, &c->arena, &back, &again, NULL));
        assert_string_equal(step_text_of(c, again), step_text_of(c, m));
        assert_string_equal(text_with_bytes(c, again), text_with_bytes(c, m));
        if (i % 2 == 0) /* where it came from the model in front is as it was */
            assert_memory_equal(bytes.p, whole(c, from).p, whole(c, from).n);
        assert_int_equal(bytes.n < 6000, i >= 2);
        spine_close(&back);
        spine_close(&s);
        must(c, export_to(c, to, out, NULL, 0, c->ir.limits.model_bytes));
        assert_string_equal(values(c, out), values(c, from));
    }
    empty(c, a), empty(c, b), empty(c, d);
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
