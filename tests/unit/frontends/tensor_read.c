/* Tensors out of files: every storage and element type, lies about them, and all that the suites have. */
#include "onnx_bytes.h"

#include "frontends/onnx/file/payload.h"
#include "ops/card/cards.h"
#include "ops/card/schema.h"

/* ---- tensors in memory ---- */

typedef struct Reading {
    Bytes *bytes;
    uint8_t out[256];
    TensorInfo info;
} Reading;

static Status read_tensor(Fixture *f, void *arg)
{
    Reading *r = arg;
    Spine s;

    source_memory(&s.source, &f->memory, "m", r->bytes->p, r->bytes->n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    Status status = tensor_info(&s, &f->diag, "tensor", s.tensor, &r->info);
    if (status == OK)
        status = tensor_check(&s, &f->diag, "tensor", s.tensor, &r->info);
    if (status == OK) {
        assert_true(r->info.bytes <= sizeof r->out);
        status = tensor_read(&s, &f->diag, "tensor", s.tensor, r->out, r->info.bytes);
    }
    spine_close(&s);
    return status;
}

/* Reads the bytes as a TensorProto and frees them. */
static Status read_and_free(Fixture *f, Reading *r, Bytes t)
{
    *r = (Reading){ .bytes = &t };
    Status status = fixture_run(f, read_tensor, r);
    free(t.p);
    return status;
}

static void integers_of_every_width_are_read(void **state)
{
    static const struct {
        int dtype;
        uint32_t field;
        int64_t low, high;
        size_t width;
    } cases[] = {
        { ONNX_UINT8, 5, 0, 255, 1 },
        { ONNX_INT8, 5, -128, 127, 1 },
        { ONNX_UINT16, 5, 0, 65535, 2 },
        { ONNX_INT16, 5, -32768, 32767, 2 },
        { ONNX_INT32, 5, INT32_MIN, INT32_MAX, 4 },
        { ONNX_INT64, 7, INT64_MIN, INT64_MAX, 8 },
        { ONNX_BOOL, 5, 0, 1, 1 },
        { ONNX_FLOAT16, 5, 0, 65535, 2 },
        { ONNX_BFLOAT16, 5, 0, 65535, 2 },
        { ONNX_FLOAT8E4M3FN, 5, 0, 255, 1 },
        { ONNX_FLOAT8E8M0, 5, 0, 255, 1 },
        { ONNX_UINT32, 11, 0, UINT32_MAX, 4 },
    };
    Fixture f;
    Reading r;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int packed = 0; packed < 2; packed++) {
            Bytes t = tensor_of(cases[i].dtype, 2), run = { 0 };
            put_varint(&run, (uint64_t)cases[i].low);
            put_varint(&run, (uint64_t)cases[i].high);
            if (packed) {
                put_message(&t, cases[i].field, run);
            } else {
                free(run.p);
                put_int(&t, cases[i].field, (uint64_t)cases[i].low);
                put_int(&t, cases[i].field, (uint64_t)cases[i].high);
            }
            assert_int_equal(read_and_free(&f, &r, t), OK);
            assert_int_equal(r.info.bytes, 2 * cases[i].width);
            assert_memory_equal(r.out, &cases[i].low, cases[i].width);
            assert_memory_equal(r.out + cases[i].width, &cases[i].high, cases[i].width);
        }
        if (cases[i].width == 8)
            continue;
        Bytes t = tensor_of(cases[i].dtype, 1);
        put_int(&t, cases[i].field, (uint64_t)cases[i].low - 1);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        assert_non_null(strstr(f.said, "outside"));
        t = tensor_of(cases[i].dtype, 1);
        put_int(&t, cases[i].field, (uint64_t)cases[i].high + (cases[i].dtype == ONNX_INT32 ? UINT32_MAX : 1));
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
    }
}

static void a_negative_int32_may_be_five_bytes_long(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_INT32, 1);

    (void)state;
    put_int(&t, 5, 0xfffffffe);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, &(int32_t){ -2 }, 4);
}

static void elements_below_a_byte_stay_packed(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_INT4, 5);

    (void)state;
    put_bytes(&t, 5, "\x21\x43\x05", 3);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.bytes, 3);
    assert_memory_equal(r.out, "\x21\x43\x05", 3);
    t = tensor_of(ONNX_UINT2, 5);
    put_bytes(&t, 9, "\xe4\x01", 2);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, "\xe4\x01", 2);
    static const int sixes[] = { ONNX_FLOAT6E2M3, ONNX_FLOAT6E3M2 };
    for (int i = 0; i < 2; i++) { /* one to a value where they are typed, a stream of bits where they are raw */
        t = tensor_of(sixes[i], 5);
        put_bytes(&t, 5, "\x01\x02\x3f\x20\x15", 5);
        assert_int_equal(read_and_free(&f, &r, t), OK);
        assert_int_equal(r.info.bytes, 4);
        assert_memory_equal(r.out, "\x81\xf0\x83\x15", 4);
        t = tensor_of(sixes[i], 5);
        put_bytes(&t, 9, "\x81\xf0\x83\x15", 4);
        assert_int_equal(read_and_free(&f, &r, t), OK);
        assert_memory_equal(r.out, "\x81\xf0\x83\x15", 4);
        t = tensor_of(sixes[i], 1);
        put_bytes(&t, 5, "\x40", 1);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        assert_non_null(strstr(f.said, "int32_data: value 0 is 64, outside 0 to 63"));
    }
    t = tensor_of(ONNX_FLOAT4E2M1, 5);
    put_bytes(&t, 9, "\xe4\x01", 2);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_string_equal(f.said, "m: byte 0: tensor: raw_data has 2 bytes where the shape needs 3\n");
}

static void floats_are_read_packed_or_not_and_mixed(void **state)
{
    static const float want[4] = { 1, 2, 3, 4 };
    static const double wide[2] = { 0.1, -7 };
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_FLOAT, 4);

    (void)state;
    put_bytes(&t, 4, want, 4);
    for (int i = 1; i < 3; i++) {
        put_key(&t, 4, 5);
        put(&t, &want[i], 4);
    }
    put_bytes(&t, 4, &want[3], 4);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, want, sizeof want);

    t = tensor_of(ONNX_COMPLEX64, 2);
    put_bytes(&t, 4, want, sizeof want);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, want, sizeof want);

    t = tensor_of(ONNX_DOUBLE, 2);
    put_bytes(&t, 10, wide, 8);
    put_key(&t, 10, 1);
    put(&t, &wide[1], 8);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, wide, sizeof wide);

    t = tensor_of(ONNX_FLOAT, 2);
    put_bytes(&t, 9, "abcdefgh", 8);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, "abcdefgh", 8);
}

static Status read_strings(Fixture *f, void *arg)
{
    Reading *r = arg;
    Spine s;
    Str out[3];

    source_memory(&s.source, &f->memory, "m", r->bytes->p, r->bytes->n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    Status status = tensor_read(&s, &f->diag, "tensor", s.tensor, out, sizeof out);
    if (status == OK) {
        assert_true(str_is(out[0], "a"));
        assert_int_equal(out[1].n, 0);
        assert_int_equal(out[2].n, 3);
        assert_memory_equal(out[2].p, "x\0y", 3);
    }
    spine_close(&s);
    return status;
}

static void strings_are_bytes(void **state)
{
    Fixture f;
    Bytes t = tensor_of(ONNX_STRING, 3);

    (void)state;
    put_text(&t, 6, "a");
    put_text(&t, 6, "");
    put_text(&t, 8, "name between");
    put_bytes(&t, 6, "x\0y", 3);
    if (fixture_run(&f, read_strings, &(Reading){ .bytes = &t }))
        FAIL("%s", f.said);
    put_text(&t, 6, "one too many");
    assert_int_equal(fixture_run(&f, read_strings, &(Reading){ .bytes = &t }), INVALID);
    free(t.p);
}

static void scalars_and_empty_tensors_are_tensors(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = { 0 };

    (void)state;
    put_int(&t, 2, ONNX_FLOAT);
    put_bytes(&t, 9, "abcd", 4);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.rank, 0);
    assert_int_equal(r.info.elements, 1);
    t = tensor_of(ONNX_FLOAT, 0);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    t = tensor_of(ONNX_FLOAT, 0);
    put_bytes(&t, 9, "", 0);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.bytes, 0);
}

/* What declares one thing and stores another. */
static void lies_about_tensors_are_found(void **state)
{
    static const struct {
        const char *says;
        int64_t n;
        int dtype;
        uint32_t field; /* bytes of it follow; 0: none */
        const char *bytes;
        size_t n_bytes;
    } cases[] = {
        { "there is no element type 0", 1, 0, 9, "a", 1 },
        { "there is no element type 29", 1, 29, 9, "a", 1 },
        { "there is no element type -1", 1, -1, 9, "a", 1 },
        { "dimension 0 is negative: -1", -1, ONNX_FLOAT, 0, "", 0 },
        { "dimension 0 is negative: -9223372036854775808", INT64_MIN, ONNX_FLOAT, 0, "", 0 },
        { "dimension 0, 9223372036854775807, exceeds the limit dim (1099511627776)", INT64_MAX, ONNX_FLOAT, 0, "", 0 },
        { "1 elements are declared and none are stored", 1, ONNX_FLOAT, 0, "", 0 },
        { "1099511627776 elements are declared and none are stored", 1099511627776, ONNX_FLOAT, 0, "", 0 },
        { "raw_data has 7 bytes where the shape needs 8", 2, ONNX_FLOAT, 9, "abcdefg", 7 },
        { "raw_data has 9 bytes where the shape needs 8", 2, ONNX_FLOAT, 9, "abcdefghi", 9 },
        { "raw_data has 4 bytes where the shape needs 0", 0, ONNX_FLOAT, 9, "abcd", 4 },
        { "raw_data cannot hold strings", 1, ONNX_STRING, 9, "abcd", 4 },
        { "float_data holds 1 values where the shape needs 2", 2, ONNX_FLOAT, 4, "abcd", 4 },
        { "float_data ends inside a value", 1, ONNX_FLOAT, 4, "abcde", 5 },
        { "float_data cannot hold elements of type 7", 1, ONNX_INT64, 4, "abcd", 4 },
        { "int32_data cannot hold elements of type 1", 1, ONNX_FLOAT, 5, "a", 1 },
        { "int64_data cannot hold elements of type 6", 1, ONNX_INT32, 7, "a", 1 },
        { "int64_data holds at most 1 values where the shape needs 2", 2, ONNX_INT64, 7, "a", 1 },
        { "int64_data holds more than the 1 values that the shape needs", 1, ONNX_INT64, 7, "ab", 2 },
        { "int64_data holds 1 values where the shape needs 2", 2, ONNX_INT64, 7, "\x80\x01", 2 },
        { "int64_data: a number is malformed", 2, ONNX_INT64, 7, "\x80\x00", 2 },
        { "int64_data: a number is malformed", 2, ONNX_INT64, 7, "\x80\x80", 2 },
        { "element 1 is a bool of value 2", 2, ONNX_BOOL, 9, "\1\2", 2 },
    };
    Fixture f;
    Reading r;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Bytes t = tensor_of(cases[i].dtype, cases[i].n);
        if (cases[i].field)
            put_bytes(&t, cases[i].field, cases[i].bytes, cases[i].n_bytes);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        if (!strstr(f.said, cases[i].says))
            FAIL("case %zu says: %s", i, f.said);
    }
}

static void products_that_overflow_are_refused(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = { 0 };

    (void)state;
    put_bytes(&t, 1, "\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20", 18); /* 2^40 cubed */
    put_int(&t, 2, ONNX_FLOAT);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "exceeds the limit elements"));
    t = (Bytes){ 0 };
    put_bytes(&t, 1, "\x00\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20", 13); /* also where one of them is 0 */
    put_int(&t, 2, ONNX_FLOAT);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
}

static void two_storages_are_one_too_many(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_FLOAT, 1);

    (void)state;
    put_bytes(&t, 9, "abcd", 4);
    put_bytes(&t, 4, "abcd", 4);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "float_data and raw_data both hold elements"));
    t = tensor_of(ONNX_FLOAT, 1);
    put_bytes(&t, 3, "", 0);
    assert_int_equal(read_and_free(&f, &r, t), UNSUPPORTED);
    t = tensor_of(ONNX_FLOAT, 1);
    put_int(&t, 14, 2);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "there is no data_location 2"));
}

/* ---- the suites ---- */

typedef struct Suite {
    size_t files, tensors, in_parts;
} Suite;

/* A tensor that can be read in parts gives the same bytes so; false: it cannot. */
static bool parts_agree(Fixture *f, Spine *s, const Onnx__TensorProto *t, const TensorInfo *info, const uint8_t *whole)
{
    Ir ir;
    ir_open(&ir, &f->arena, &ops_table, &f->diag);
    const Type *type =
        type_tensor(&ir.types, info->dtype == ONNX_BOOL ? BOOL : U8, 1, (int64_t[]){ (int64_t)info->bytes });
    Payload *p = payload_of_proto(s, &f->arena, type, t, "tensor");
    if (!p->read_part || !info->bytes)
        return false;
    uint8_t *part = arena_alloc(&f->arena, info->bytes);
    for (size_t at = 0; at < info->bytes; at += info->bytes / 3 + 1) {
        const size_t n = (info->bytes - at + 1) / 2;
        assert_true(payload_part(p, at, part, n, &f->diag));
        assert_memory_equal(part, whole + at, n);
    }
    return true;
}

static Status read_all_of(Fixture *f, void *arg)
{
    const char *path = ((void **)arg)[0];
    Suite *suite = ((void **)arg)[1];
    Spine s;

    TRY(spine_open(&s, &f->memory, &f->diag, &f->limits, path));
    const Onnx__GraphProto *g = s.model->graph;
    suite->files++;
    for (size_t i = 0; i < g->n_initializer + g->n_node; i++) {
        const Onnx__TensorProto *t = i < g->n_initializer ? g->initializer[i] : NULL;
        TensorInfo info;
        if (!t) {
            const Onnx__NodeProto *n = g->node[i - g->n_initializer];
            t = n->n_attribute && n->attribute[0]->t ? n->attribute[0]->t : NULL;
        }
        if (!t)
            continue;
        TRY(tensor_info(&s, &f->diag, "tensor", t, &info));
        TRY(tensor_check(&s, &f->diag, "tensor", t, &info));
        uint8_t *whole = arena_alloc(&f->arena, info.bytes + 1);
        TRY(tensor_read(&s, &f->diag, "tensor", t, whole, info.bytes));
        suite->tensors++;
        suite->in_parts += parts_agree(f, &s, t, &info, whole);
    }
    spine_close(&s);
    return OK;
}

static void read_suite_model(const char *path, void *arg)
{
    Fixture f;

    if (fixture_run(&f, read_all_of, (void *[]){ (void *)(uintptr_t)path, arg }))
        FAIL("%s: %s", path, f.said);
}

static void every_tensor_of_the_suites_reads(void **state)
{
    Suite suite = { 0 };

    (void)state;
    if (each_model(read_suite_model, &suite) == 0)
        skip();
    print_message("%zu models, %zu tensors\n", suite.files, suite.tensors);
    assert_true(suite.tensors >= 300);
    assert_true(suite.in_parts >= 50);
}

typedef struct Unpacked {
    size_t models, nodes, tensors;
} Unpacked;

static Status unpack_one(Fixture *f, void *arg)
{
    Spine spine;
    Unpacked *u = ((void **)arg)[1];

    TRY(spine_open(&spine, &f->memory, &f->diag, &f->limits, ((void **)arg)[0]));
    const Onnx__GraphProto *g = spine.model->graph;
    assert_non_null(g);
    assert_true(g->has_source_at && g->source_at + g->source_size <= spine.source.size);
    for (size_t i = 0; i < g->n_node; i++)
        assert_true(g->node[i]->source_at >= g->source_at && g->node[i]->has_source_size);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (t->has_raw_data) {
            Span span = span_read(t->raw_data.data);
            assert_true(span.offset >= t->source_at && span.offset + span.length <= t->source_at + t->source_size);
        }
    }
    u->models++;
    u->nodes += g->n_node;
    u->tensors += g->n_initializer;
    spine_close(&spine);
    return OK;
}

static void unpack_file(const char *path, void *arg)
{
    Fixture f;
    void *both[2] = { (void *)(uintptr_t)path, arg };

    if (fixture_run(&f, unpack_one, both))
        FAIL("%s: %s", path, f.said);
}

static void every_model_unpacks(void **state)
{
    Unpacked u = { 0 };

    (void)state;
    if (each_model(unpack_file, &u) == 0)
        skip();
    print_message("%zu models, %zu nodes, %zu initializers\n", u.models, u.nodes, u.tensors);
    assert_true(u.models >= 1000 && u.nodes > u.models && u.tensors > 50);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_width_are_read),
        cmocka_unit_test(a_negative_int32_may_be_five_bytes_long),
        cmocka_unit_test(elements_below_a_byte_stay_packed),
        cmocka_unit_test(floats_are_read_packed_or_not_and_mixed),
        cmocka_unit_test(strings_are_bytes),
        cmocka_unit_test(scalars_and_empty_tensors_are_tensors),
        cmocka_unit_test(lies_about_tensors_are_found),
        cmocka_unit_test(products_that_overflow_are_refused),
        cmocka_unit_test(two_storages_are_one_too_many),
        cmocka_unit_test(every_tensor_of_the_suites_reads),
        cmocka_unit_test(every_model_unpacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
