/* Splice and skeleton: bytes come back as they were, except where an edit says otherwise. */
#include "onnx_bytes.h"

#include <unistd.h>

#include "frontends/onnx/file/spine.h"
#include "frontends/onnx/file/splice.h"

static Status append(void *user, const void *bytes, size_t n)
{
    put(user, bytes, n);
    return OK;
}

static Splice splice_of(Fixture *f, Source *source, const Edit *edits, size_t n)
{
    return (Splice){ .source = source,
                     .type = &onnx__model_proto__descriptor,
                     .limits = &f->limits,
                     .diag = &f->diag,
                     .arena = &f->arena,
                     .edits = edits,
                     .n_edits = n };
}

/* The bytes with the edits applied; the announced size must be the real one. */
static Status apply(Fixture *f, const Bytes *in, const Edit *edits, size_t n, Bytes *out)
{
    Source source;
    uint64_t size = 0, announced = 0;

    out->n = 0;
    source_memory(&source, &f->memory, "m", in->p, in->n);
    Splice s = splice_of(f, &source, edits, n);
    Status status = splice_write(&s, &(Sink){ append, out }, &size);
    if (status == OK) {
        assert_int_equal(size, out->n);
        assert_int_equal(splice_size(&s, &announced), OK);
        assert_int_equal(announced, size);
    }
    source_close(&source);
    return status;
}

static void assert_same(const Bytes *a, const Bytes *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->p, b->p, a->n);
}

/* ---- the skeleton, and the payload put back ---- */

typedef struct Restore {
    Arena *arena;
    const Bytes *original;
    Edit *edit;
    size_t n, cap;
    uint64_t body[200];
    int depth;
} Restore;

static Status restore_leaf(void *user, const WireItem *item)
{
    Restore *r = user;
    const Bytes *skeleton = r->original + 1;
    Edit e = { .within = r->body[item->depth - 1], .offset = item->key, .length = item->end - item->key };

    if (item->number == 536870910 || item->number == 536870911) { /* ours */
        GROW(r->arena, r->edit, r->n, r->cap);
        r->edit[r->n++] = e;
    } else if (item->rule && item->rule->kind == FIELD_PAYLOAD) {
        assert_int_equal(item->end - item->at, SPAN_BYTES);
        Span span = span_read(skeleton->p + item->at);
        if (!span.keyed)
            e = edit_value(e.within, item->at, SPAN_BYTES, span.length);
        e.n = span.length;
        e.bytes = r->original->p + span.offset;
        GROW(r->arena, r->edit, r->n, r->cap);
        r->edit[r->n++] = e;
    }
    return OK;
}

static Status restore_enter(void *user, const WireItem *item, bool *skip)
{
    Restore *r = user;

    (void)skip;
    r->body[item->depth] = item->at;
    return OK;
}

static Status skeleton_and_back(Fixture *f, void *arg)
{
    const Bytes *in = arg;
    Bytes both[2] = { *in, { 0 } }, out = { 0 };
    Source source;
    const uint8_t *p;
    size_t n;

    source_memory(&source, &f->memory, "m", in->p, in->n);
    Wire wire = { .source = &source,
                  .type = &onnx__model_proto__descriptor,
                  .limits = &f->limits,
                  .diag = &f->diag,
                  .arena = &f->arena };
    TRY(skeleton_make(&wire, &p, &n));
    source_close(&source);
    put(&both[1], p, n);

    Restore r = { .arena = &f->arena, .original = both };
    source_memory(&source, &f->memory, "skeleton", both[1].p, n);
    wire.source = &source;
    wire.visitor = (WireVisitor){ restore_leaf, restore_enter, NULL, &r };
    TRY(wire_walk(&wire));
    source_close(&source);
    TRY(apply(f, &both[1], r.edit, r.n, &out));
    assert_same(&out, in);
    free(both[1].p);
    free(out.p);
    return OK;
}

static Status file_unedited(Fixture *f, void *arg)
{
    Bytes out = { 0 }, in = read_whole_file(arg);
    Source source;

    TRY(source_open(&source, &f->memory, &f->diag, arg));
    Splice s = splice_of(f, &source, NULL, 0);
    TRY(splice_write(&s, &(Sink){ append, &out }, NULL));
    source_close(&source);
    assert_same(&out, &in);
    free(out.p);
    free(in.p);
    return OK;
}

/* ---- real files ---- */

static void identity_of_one(const char *path, void *arg)
{
    Fixture f;
    Bytes in = read_whole_file(path);

    (void)arg;
    if (fixture_run(&f, file_unedited, (char *)(uintptr_t)path) || fixture_run(&f, skeleton_and_back, &in))
        FAIL("%s: %s", path, f.said);
    free(in.p);
}

static void every_model_comes_back_byte_for_byte(void **state)
{
    (void)state;
    size_t n = each_model(identity_of_one, NULL);
    if (n == 0)
        skip();
    print_message("%zu models\n", n);
    assert_true(n >= 1000);
}

/* ---- files that no writer would write so ---- */

static Bytes odd_tensor(void)
{
    Bytes t = { 0 };

    put_text(&t, 8, "w"); /* name before dims */
    put_bytes(&t, 4, "\0\0\200?", 4);
    put_key(&t, 4, 5); /* float_data: packed, then three unpacked, then packed */
    put(&t, "\0\0\0@", 4);
    put_key(&t, 4, 5);
    put(&t, "\0\0\0@", 4);
    put_key(&t, 4, 5);
    put(&t, "\0\0\0@", 4);
    put_bytes(&t, 4, "\0\0\200?\0\0\200?", 8);
    put_int(&t, 5, 300); /* another storage, unpacked */
    put_int(&t, 5, 7);
    put_int(&t, 2, 1);
    put_bytes(&t, 5, "\1\2\3", 3);
    put_text(&t, 6, "some");
    put_text(&t, 6, "");
    put_text(&t, 6, "strings");
    put_int(&t, 1, 6);
    put_bytes(&t, 9, "", 0);
    return t;
}

static Bytes odd_model(void)
{
    Bytes m = { 0 }, g = { 0 }, n = { 0 }, a = { 0 };

    put_message(&a, 5, odd_tensor());
    put_text(&a, 1, "value");
    put_text(&n, 4, "Constant");
    put_message(&n, 5, a);
    put_text(&n, 2, "c");
    put_message(&g, 5, odd_tensor());
    put_message(&g, 1, n);
    put_bytes(&g, 1, "", 0);
    put_text(&g, 2, "odd");
    put_message(&g, 5, odd_tensor());
    put_int(&m, 1, 8);
    put_message(&m, 7, g);
    put_bytes(&m, 8, "\x10\x0d", 2);
    return m;
}

static void odd_files_come_back_too(void **state)
{
    Fixture f;
    Bytes m = odd_model();

    (void)state;
    if (fixture_run(&f, skeleton_and_back, &m))
        FAIL("%s", f.said);
    free(m.p);
}

static Status odd_spans(Fixture *f, void *arg)
{
    Bytes *m = arg;
    Spine s;

    source_memory(&s.source, &f->memory, "m", m->p, m->n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor));
    const Onnx__TensorProto *t = s.model->graph->initializer[1];
    assert_int_equal(t->n_float_data, 3);
    assert_false(span_read(t->float_data[0].data).keyed);
    assert_true(span_read(t->float_data[1].data).keyed);
    assert_int_equal(span_read(t->float_data[1].data).length, 15);
    assert_int_equal(span_read(t->float_data[2].data).length, 8);
    assert_int_equal(t->n_int32_data, 2);
    assert_int_equal(span_read(t->int32_data[0].data).length, 5);
    assert_int_equal(t->n_string_data, 1);
    assert_memory_equal(m->p + span_read(t->string_data[0].data).offset, "\x32\4some\x32\0\x32\7strings", 17);
    assert_true(t->has_raw_data && span_read(t->raw_data.data).length == 0);
    assert_int_equal(t->n_dims, 1);
    assert_true(str_is(str_of(t->name), "w"));
    assert_int_equal(s.model->graph->n_node, 2);
    assert_int_equal(s.model->graph->node[1]->source_size, 0);
    assert_true(str_is(str_of(s.model->graph->node[0]->attribute[0]->name), "value"));
    assert_int_equal(s.model->opset_import[0]->version, 13);
    spine_close(&s);
    return OK;
}

static void runs_of_fields_become_one_span(void **state)
{
    Fixture f;
    Bytes m = odd_model();

    (void)state;
    if (fixture_run(&f, odd_spans, &m))
        FAIL("%s", f.said);
    free(m.p);
}

static Status unknown_fields(Fixture *f, void *arg)
{
    Bytes m = { 0 }, g = { 0 }, out = { 0 };
    Spine s;

    (void)arg;
    put_int(&g, 900, 1);
    put_bytes(&g, 536870910, "", 0); /* a number of ours, of another type */
    put_text(&g, 2, "g");
    put_int(&g, 900, 2);
    put_text(&m, 901, "later");
    put_message(&m, 7, g);
    put_text(&m, 902, "newest");
    source_memory(&s.source, &f->memory, "m", m.p, m.n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor));
    assert_int_equal(s.model->base.n_unknown_fields, 0);
    assert_int_equal(s.model->graph->base.n_unknown_fields, 0);
    assert_true(str_is(str_of(s.model->graph->name), "g"));
    assert_int_equal(s.model->graph->source_size, 15);
    spine_close(&s);
    TRY(apply(f, &m, NULL, 0, &out)); /* and yet they stay in the file */
    assert_same(&out, &m);
    free(m.p);
    free(out.p);
    return OK;
}

static void unknown_fields_stay_in_the_file_only(void **state)
{
    Fixture f;

    (void)state;
    if (fixture_run(&f, unknown_fields, NULL))
        FAIL("%s", f.said);
}

/* ---- edits ---- */

/* model{graph{tensor{name, raw_data: n bytes}, name}, version}; *raw gets where the bytes lie. */
static Bytes model_with(size_t n, uint64_t *tensor, uint64_t *raw)
{
    Bytes m = { 0 }, g = { 0 }, t = { 0 };
    uint8_t *payload = calloc(1, n + 1);

    memset(payload, 'x', n);
    put_text(&t, 8, "w");
    put_bytes(&t, 9, payload, n);
    free(payload);
    uint64_t in_tensor = t.n - n, size = t.n;
    put_message(&g, 5, t);
    uint64_t in_graph = g.n - size;
    put_text(&g, 2, "g");
    size = g.n;
    put_message(&m, 7, g);
    *tensor = m.n - size + in_graph;
    *raw = *tensor + in_tensor;
    put_int(&m, 1, 8);
    return m;
}

static Status put_xs(void *user, const Sink *sink)
{
    size_t n = *(size_t *)user;

    for (size_t i = 0; i < n; i++)
        TRY(sink->put(sink->user, "x", 1));
    return OK;
}

/* A payload of n bytes replaced by one of k gives the very file with k: prefixes grow and shrink through all widths. */
static Status resize_payload(Fixture *f, void *arg)
{
    static const size_t sizes[] = {
        0, 1, 100, 115, 116, 117, 118, 119, 120, 127, 128, 200, 16370, 16384, 16400, 70000
    };
    Bytes out = { 0 };

    (void)arg;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t k = 0; k < COUNT(sizes); k++) {
            uint64_t tensor, raw, unused;
            Bytes from = model_with(sizes[i], &tensor, &raw), to = model_with(sizes[k], &unused, &unused);
            size_t n = sizes[k];
            Edit e = edit_value(tensor, raw, sizes[i], n);
            e.write = put_xs;
            e.user = &n;
            TRY(apply(f, &from, &e, 1, &out));
            assert_same(&out, &to);
            free(from.p);
            free(to.p);
        }
    }
    free(out.p);
    return OK;
}

static void length_prefixes_follow_the_payload(void **state)
{
    Fixture f;

    (void)state;
    if (fixture_run(&f, resize_payload, NULL))
        FAIL("%s", f.said);
}

/* Insertions where messages end together: at the end of an empty node, of its graph, of the file. */
static Status insert_at_ends(Fixture *f, void *arg)
{
    Bytes m = { 0 }, g = { 0 }, want = { 0 }, inner = { 0 }, node = { 0 }, out = { 0 };

    (void)arg;
    put_bytes(&g, 1, "", 0);
    put_message(&m, 7, g); /* 3a 02 0a 00 */
    assert_int_equal(m.n, 4);
    const Edit edits[] = {
        { .within = 0, .offset = 4, .bytes = "\x08\x05", .n = 2 },
        { .within = 2, .offset = 4, .bytes = "\x12\x01h", .n = 3 },
        { .within = 2,
          .offset = 4,
          .bytes = "\x52\1"
                   "d",
          .n = 3 },
        { .within = 4,
          .offset = 4,
          .bytes = "\x22\3"
                   "Add",
          .n = 5 },
        { .within = 2, .offset = 2, .bytes = "\x2a\x00", .n = 2 },
    };
    put_text(&node, 4, "Add");
    put_bytes(&inner, 5, "", 0);
    put_message(&inner, 1, node);
    put_text(&inner, 2, "h");
    put_text(&inner, 10, "d");
    put_message(&want, 7, inner);
    put_int(&want, 1, 5);
    TRY(apply(f, &m, edits, COUNT(edits), &out));
    assert_same(&out, &want);

    /* replacing the node wholly, and with something before and after it */
    const Edit whole[] = {
        { .within = 2, .offset = 2, .length = 2, .bytes = "\x12\x01n", .n = 3 },
        { .within = 2,
          .offset = 2,
          .bytes = "\x52\x01"
                   "a",
          .n = 3 },
    };
    TRY(apply(f, &m, whole, COUNT(whole), &out));
    assert_int_equal(out.n, 8);
    assert_memory_equal(out.p,
                        "\x3a\x06\x52\x01"
                        "a\x12\x01n",
                        8);

    /* deleting it */
    TRY(apply(f, &m, &(Edit){ .within = 2, .offset = 2, .length = 2 }, 1, &out));
    assert_int_equal(out.n, 2);
    assert_memory_equal(out.p, "\x3a\0", 2);
    free(m.p);
    free(want.p);
    free(out.p);
    return OK;
}

static void insertions_go_into_the_message_they_name(void **state)
{
    Fixture f;

    (void)state;
    if (fixture_run(&f, insert_at_ends, NULL))
        FAIL("%s", f.said);
}

static Status wrong_edits(Fixture *f, void *arg)
{
    Bytes m = odd_model(), out = { 0 };
    size_t wrong = 3;

    (void)arg;
    assert_int_equal(apply(f, &m, (Edit[]){ { .offset = 0, .length = 2 }, { .offset = 1 } }, 2, &out), INTERNAL);
    assert_int_equal(apply(f, &m, &(Edit){ .offset = m.n, .length = 1 }, 1, &out), INTERNAL);
    assert_int_equal(apply(f, &m, &(Edit){ .within = 3, .offset = 3 }, 1, &out), INTERNAL);
    assert_int_equal(apply(f, &m, &(Edit){ .offset = 2, .n = 4, .write = put_xs, .user = &wrong }, 1, &out), INTERNAL);
    free(m.p);
    free(out.p);
    return OK;
}

static void edits_that_fit_nowhere_are_refused(void **state)
{
    Fixture f;

    (void)state;
    assert_int_equal(fixture_run(&f, wrong_edits, NULL), OK);
}

static Status change_while_open(Fixture *f, void *arg)
{
    char path[] = "/tmp/qcc-splice-XXXXXX";
    int fd = mkstemp(path);
    Bytes out = { 0 };
    Source source;

    (void)arg;
    assert_int_equal(write(fd, "\x08\x05", 2), 2);
    TRY(source_open(&source, &f->memory, &f->diag, path));
    assert_int_equal(write(fd, "\x10", 1), 1);
    Splice s = splice_of(f, &source, NULL, 0);
    Status status = splice_write(&s, &(Sink){ append, &out }, NULL);
    source_close(&source);
    close(fd);
    unlink(path);
    free(out.p);
    return status;
}

static void a_file_that_changed_is_not_spliced(void **state)
{
    Fixture f;

    (void)state;
    assert_int_equal(fixture_run(&f, change_while_open, NULL), IO);
    assert_non_null(strstr(f.said, "the file has changed since it was read"));
}

/* ---- size ---- */

static Status budget(Fixture *f, void *arg)
{
    Bytes *m = arg;
    Spine s;

    source_memory(&s.source, &f->memory, "m", m->p, m->n);
    Status status = spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor);
    if (status == OK)
        spine_close(&s);
    return status;
}

static Status small_budget(Fixture *f, void *arg)
{
    f->limits.parse_bytes = 1 << 20;
    return budget(f, arg);
}

static Status small_memory(Fixture *f, void *arg)
{
    f->memory.budget = 4 << 20;
    return budget(f, arg);
}

static void messages_have_a_budget(void **state)
{
    Fixture f;
    Bytes m = { 0 };

    (void)state;
    for (int i = 0; i < 100000; i++)
        put_bytes(&m, 14, "", 0);
    assert_int_equal(fixture_run(&f, budget, &m), OK);
    assert_int_equal(fixture_run(&f, small_budget, &m), INVALID);
    assert_string_equal(f.said, "m: reading exceeds the limit parse_bytes (1048576)\n");
    assert_int_equal(fixture_run(&f, small_memory, &m), NO_MEMORY);
    free(m.p);
}

/* Every allocation of reading fails once; nothing leaks (fixture_run looks). */
static Status failing(Fixture *f, void *arg)
{
    f->memory.fail_at = *(uint64_t *)((void **)arg)[1];
    return budget(f, ((void **)arg)[0]);
}

static void every_allocation_may_fail(void **state)
{
    Bytes m = odd_model();
    Fixture f;
    uint64_t n = 1;

    (void)state;
    for (;; n++) {
        Status status = fixture_run(&f, failing, (void *[]){ &m, &n });
        if (status == OK)
            break;
        assert_int_equal(status, NO_MEMORY);
    }
    assert_true(n > 3);
    free(m.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_comes_back_byte_for_byte),
        cmocka_unit_test(odd_files_come_back_too),
        cmocka_unit_test(runs_of_fields_become_one_span),
        cmocka_unit_test(unknown_fields_stay_in_the_file_only),
        cmocka_unit_test(length_prefixes_follow_the_payload),
        cmocka_unit_test(insertions_go_into_the_message_they_name),
        cmocka_unit_test(edits_that_fit_nowhere_are_refused),
        cmocka_unit_test(a_file_that_changed_is_not_spliced),
        cmocka_unit_test(messages_have_a_budget),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
