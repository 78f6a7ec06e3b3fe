/* The wire walk: what it accepts, what it refuses and where it says the fault lies. */
#include "onnx_bytes.h"

#include "frontends/onnx/file/onnx.pb-c.h"
#include "frontends/onnx/file/wire.h"

typedef struct Case {
    const void *bytes;
    size_t n;
    const ProtobufCMessageDescriptor *type;
    Limits limits;
} Case;

static Status walk(Fixture *f, void *arg)
{
    Case *c = arg;
    Source source;

    source_memory(&source, &f->memory, "m", c->bytes, c->n);
    Status status = wire_walk(
        &(Wire){ .source = &source, .type = c->type, .limits = &c->limits, .diag = &f->diag, .arena = &f->arena });
    source_close(&source);
    return status;
}

static Status walk_as(Fixture *f, const ProtobufCMessageDescriptor *type, const void *bytes, size_t n)
{
    return fixture_run(f, walk, &(Case){ bytes, n, type, LIMITS_DEFAULT });
}

static Status walk_model(Fixture *f, const Bytes *b)
{
    return walk_as(f, &onnx__model_proto__descriptor, b->p, b->n);
}

/* Walks the bytes of a hexadecimal string as a model. */
static Status walk_hex(Fixture *f, const char *hex)
{
    uint8_t bytes[200];
    size_t n = 0;

    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1 && hex[2 * n]; n++)
        bytes[n] = (uint8_t)byte;
    return walk_as(f, &onnx__model_proto__descriptor, bytes, n);
}

static void varints_are_read_in_their_one_form(void **state)
{
    static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX };
    uint64_t v;
    uint8_t p[16];

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        int n = varint_write(p, values[i]);
        assert_int_equal(n, varint_size(values[i]));
        assert_int_equal(varint_read(p, sizeof p, &v), n);
        assert_true(v == values[i]);
        for (int cut = 0; cut < n; cut++)
            assert_int_equal(varint_read(p, (size_t)cut, &v), VARINT_CUT);
    }
    assert_int_equal(varint_read((const uint8_t[]){ 0x80, 0 }, 2, &v), VARINT_PADDED);
    assert_int_equal(varint_read((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, &v), VARINT_LONG);
    assert_int_equal(varint_read((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11, &v), VARINT_LONG);
}

static void malformed_bytes_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *hex, *says;
    } cases[] = {
        { "08", "m: byte 1: ir_version: a number is cut off at the end of its message\n" },
        { "80", "m: byte 0: a number is cut off at the end of its message\n" },
        { "088000", "m: byte 1: ir_version: a number is padded with zero bits\n" },
        { "08ffffffffffffffffff7f", "m: byte 1: ir_version: a number of more than 64 bits\n" },
        { "0000", "m: byte 0: field number 0 does not exist\n" },
        { "0b0c", "m: byte 0: ir_version: wire type 3 does not exist in this format\n" },
        { "0c", "m: byte 0: ir_version: wire type 4 does not exist in this format\n" },
        { "0e", "m: byte 0: ir_version: wire type 6 does not exist in this format\n" },
        { "1205", "m: byte 0: producer_name: the file is cut short: 5 bytes are announced and 0 are left\n" },
        { "12ffffffffffffffffff01",
          "m: byte 0: producer_name: the file is cut short: 18446744073709551615 bytes are announced and 0 are left\n" },
        { "0d00000000", "m: byte 0: ir_version: wire type 5 where a varint is expected\n" },
        { "1000", "m: byte 0: producer_name: wire type 0 where bytes are expected\n" },
        { "08010802", "m: byte 2: ir_version: occurs a second time\n" },
        { "3a003a00", "m: byte 2: graph: occurs a second time\n" },
        { "3a040a02ff01", "m: byte 4: graph.node[0].field 31: wire type 7 does not exist in this format\n" },
        { "3a070a000a0322ff01",
          "m: byte 6: graph.node[1].op_type: the file is cut short: 255 bytes are announced and 0 are left\n" },
        { "3a060a0422024f0a", "m: byte 7: graph.node[0].op_type: control character 10 in a name\n" },
        { "3a060a040a02c328", "m: byte 6: graph.node[0].input[0]: the name is not UTF-8, or holds a NUL\n" },
        { "3a060a0412026100", "m: byte 6: graph.node[0].output[0]: the name is not UTF-8, or holds a NUL\n" },
    };
    Fixture f;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(walk_hex(&f, cases[i].hex), INVALID);
        assert_string_equal(f.said, cases[i].says);
    }
}

static void data_types_beyond_32_bits_are_refused(void **state)
{
    Fixture f;
    Bytes b = { 0 };

    (void)state;
    put_int(&b, 2, 0x100000001);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 1: data_type: 4294967297 does not fit in 32 bits\n");
    b.n = 0;
    put_int(&b, 2, (uint64_t)-1);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, b.p, b.n), OK);
    free(b.p);
}

static void unknown_fields_and_any_order_are_accepted(void **state)
{
    Fixture f;
    Bytes b = { 0 }, graph = { 0 };

    (void)state;
    put_text(&graph, 2, "g");
    put_int(&graph, 1000, 5);
    put_text(&graph, 536870911, "not ours");
    put_bytes(&b, 99, "\xff\x00\x80", 3);
    put_message(&b, 7, graph);
    put_key(&b, 77, 5);
    put(&b, "\1\2\3\4", 4);
    put_key(&b, 78, 1);
    put(&b, "\1\2\3\4\5\6\7\10", 8);
    put_int(&b, 1, 8);
    assert_int_equal(walk_model(&f, &b), OK);
    free(b.p);
}

static void the_empty_file_is_an_empty_message(void **state)
{
    Fixture f;

    (void)state;
    assert_int_equal(walk_as(&f, &onnx__model_proto__descriptor, "", 0), OK);
}

static void repeated_scalars_may_be_packed_or_not(void **state)
{
    Fixture f;
    Bytes b = { 0 };

    (void)state;
    put_int(&b, 1, 3);
    put_bytes(&b, 1, "\4\5\6", 3);
    put_bytes(&b, 4, "abcd", 4);
    put_key(&b, 4, 5);
    put(&b, "abcd", 4);
    put_int(&b, 5, 7);
    put_bytes(&b, 5, "\7\7", 2);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, b.p, b.n), OK);
    b.n = 0;
    put_bytes(&b, 1, "\4\x80", 2);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 3: dims[0]: a number is cut off at the end of its message\n");
    b.n = 0;
    put_bytes(&b, 7, "abcde", 5);
    assert_int_equal(walk_as(&f, &onnx__attribute_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 2: floats[0]: 5 bytes are no whole number of elements of 4 bytes\n");
    b.n = 0;
    put_bytes(&b, 2, "abcd", 4);
    assert_int_equal(walk_as(&f, &onnx__attribute_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 0: f: wire type 2 where 32 bits are expected\n");
    b.n = 0;
    put_int(&b, 4, 1);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 0: float_data[0]: wire type 0 where 32 bits are expected\n");
    free(b.p);
}

static void a_choice_is_made_once(void **state)
{
    Fixture f;
    Bytes b = { 0 };

    (void)state;
    put_bytes(&b, 1, "", 0);
    put_bytes(&b, 4, "", 0);
    assert_int_equal(walk_as(&f, &onnx__type_proto__descriptor, b.p, b.n), INVALID);
    assert_string_equal(f.said, "m: byte 2: sequence_type: another alternative of the same choice is there\n");
    b.n = 0;
    put_bytes(&b, 1, "", 0);
    put_text(&b, 6, "TENSOR");
    assert_int_equal(walk_as(&f, &onnx__type_proto__descriptor, b.p, b.n), OK);
    free(b.p);
}

/* A chain of n messages: links[i % n_links] nested in one another. */
static Bytes nest(const uint32_t *links, size_t n_links, size_t n)
{
    Bytes back = { 0 }; /* built from the inside out, reversed */
    size_t size = 0;

    for (size_t i = n; i-- > 0;) {
        uint8_t head[20];
        Bytes h = { head, 0, sizeof head };
        put_key(&h, links[i % n_links], 2);
        put_varint(&h, size);
        for (size_t k = h.n; k-- > 0;)
            put(&back, &head[k], 1);
        size = back.n;
    }
    for (size_t i = 0; i < back.n / 2; i++) {
        uint8_t t = back.p[i];
        back.p[i] = back.p[back.n - 1 - i];
        back.p[back.n - 1 - i] = t;
    }
    return back;
}

static void nesting_is_bounded_through_every_cycle(void **state)
{
    static const struct {
        const ProtobufCMessageDescriptor *type;
        uint32_t links[3];
        size_t n;
        bool graphs;
    } cycles[] = {
        { &onnx__graph_proto__descriptor, { 1, 5, 6 }, 3, true },  /* node, attribute, g */
        { &onnx__graph_proto__descriptor, { 1, 5, 11 }, 3, true }, /* node, attribute, graphs */
        { &onnx__type_proto__descriptor, { 4, 1 }, 2, false },     /* sequence_type, elem_type */
        { &onnx__type_proto__descriptor, { 5, 2 }, 2, false },     /* map_type, value_type */
        { &onnx__type_proto__descriptor, { 9, 1 }, 2, false },     /* optional_type, elem_type */
        { &onnx__sequence_proto__descriptor, { 5 }, 1, false },    /* sequence_values */
        { &onnx__sequence_proto__descriptor, { 6, 5 }, 2, false }, /* map_values, values */
        { &onnx__sequence_proto__descriptor, { 7, 5 }, 2, false }, /* optional_values, sequence_value */
        { &onnx__optional_proto__descriptor, { 7 }, 1, false },    /* optional_value */
    };
    static const size_t depths[] = { 99, 100, 101, 100000 };
    Fixture f;

    (void)state;
    for (size_t i = 0; i < COUNT(cycles); i++) {
        for (size_t k = 0; k < COUNT(depths); k++) {
            Bytes b = nest(cycles[i].links, cycles[i].n, depths[k]);
            Case c = { b.p, b.n, cycles[i].type, LIMITS_DEFAULT };
            c.limits.graph_nesting = 1000;
            Status status = fixture_run(&f, walk, &c);
            assert_int_equal(status, depths[k] <= 100 ? OK : INVALID);
            if (depths[k] > 100)
                assert_non_null(strstr(f.said, "exceeds the limit wire_nesting (100)"));
            if (cycles[i].graphs) {
                assert_int_equal(walk_as(&f, cycles[i].type, b.p, b.n), INVALID);
                assert_non_null(strstr(f.said, "exceeds the limit graph_nesting (32)"));
            }
            free(b.p);
        }
    }
}

static void counts_are_bounded(void **state)
{
    Fixture f;
    Bytes graph = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        put_bytes(&graph, 1, "", 0);
    Case c = { graph.p, graph.n, &onnx__graph_proto__descriptor, LIMITS_DEFAULT };
    c.limits.nodes = 999;
    assert_int_equal(fixture_run(&f, walk, &c), INVALID);
    assert_string_equal(f.said, "m: byte 1998: node[999]: exceeds the limit nodes (999)\n");
    c.limits.nodes = 1000;
    assert_int_equal(fixture_run(&f, walk, &c), OK);
    c.limits.model_bytes = (int64_t)graph.n - 1;
    assert_int_equal(fixture_run(&f, walk, &c), INVALID);
    assert_string_equal(f.said, "m: 2000 bytes exceed the limit model_bytes (1999)\n");
    free(graph.p);

    Bytes dims = { 0 };
    put_bytes(&dims, 1, "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 17);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, dims.p, dims.n), INVALID);
    assert_string_equal(f.said, "m: byte 0: dims[0]: exceeds the limit rank (16)\n");
    free(dims.p);

    Bytes name = { 0 };
    char long_name[4098];
    memset(long_name, 'a', 4097);
    put_bytes(&name, 8, long_name, 4097);
    assert_int_equal(walk_as(&f, &onnx__tensor_proto__descriptor, name.p, name.n), INVALID);
    assert_string_equal(f.said, "m: byte 0: name: exceeds the limit name_bytes (4096)\n");
    free(name.p);
}

/* A million empty messages, a million unknown fields, one singular field a million times: linear time, and a
 * clean end. */
static void bombs_end_quickly(void **state)
{
    enum { N = 1000000 };
    Fixture f;
    Bytes b = { 0 };

    (void)state;
    for (int i = 0; i < N; i++)
        put_bytes(&b, 7, "", 0);
    assert_int_equal(walk_model(&f, &b), INVALID);
    b.n = 0;
    for (int i = 0; i < N; i++)
        put_int(&b, 9, 1);
    assert_int_equal(walk_model(&f, &b), OK);
    b.n = 0;
    for (int i = 0; i < N; i++)
        put_bytes(&b, 14, "", 0);
    assert_int_equal(walk_model(&f, &b), OK);
    free(b.p);
}

/* Every prefix of a model is a message cut off, or, between two fields, a smaller message. */
static void every_prefix_ends_cleanly(void **state)
{
    static const char *const seeds[] = { "add",
                                         "if",
                                         "loop11",
                                         "scan9_sum",
                                         "sequence_insert_at_back",
                                         "dequantizelinear_axis",
                                         "lstm_defaults",
                                         "batchnorm_example",
                                         "identity_opt",
                                         "constant",
                                         "cast_FLOAT_to_STRING",
                                         "optional_get_element",
                                         "sce_mean_3d",
                                         "resize_downsample_scales_linear" };
    size_t n_refused = 0, n_seeds = 0;
    Fixture f;
    char path[300];

    (void)state;
    for (size_t i = 0; i < COUNT(seeds); i++) {
        snprintf(path, sizeof path, "/usr/share/libonnx-testdata/data/node/test_%s/model.onnx", seeds[i]);
        FILE *there = fopen(path, "rb");
        if (!there)
            continue;
        fclose(there);
        n_seeds++;
        Bytes b = read_whole_file(path);
        for (size_t n = 0; n < b.n; n++) {
            uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read beyond the prefix */
            memcpy(exact, b.p, n);
            n_refused += walk_as(&f, &onnx__model_proto__descriptor, exact, n) != OK;
            free(exact);
        }
        assert_int_equal(walk_model(&f, &b), OK);
        free(b.p);
    }
    if (n_seeds == 0)
        skip();
    assert_true(n_refused > 1000);
}

static void walk_file(const char *path, void *arg)
{
    Bytes b = read_whole_file(path);
    Fixture f;

    if (walk_model(&f, &b) != OK)
        FAIL("%s: %s", path, f.said);
    ++*(size_t *)arg;
    free(b.p);
}

static void every_model_of_the_suites_is_accepted(void **state)
{
    size_t n = 0;

    (void)state;
    if (each_model(walk_file, &n) == 0)
        skip();
    print_message("%zu models\n", n);
    assert_true(n >= 1000);
}

/* The rules name fields that exist, and payload fields with the wire type that the standard gives them. */
static void every_rule_names_a_field(void **state)
{
    size_t n;
    const FieldRule *rule = field_rules_all(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        size_t of_type;
        const FieldRule *first = field_rules(rule[i].type, &of_type);
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(rule[i].type, rule[i].number);
        assert_true(&rule[i] >= first && &rule[i] < first + of_type);
        assert_non_null(field);
        if (rule[i].kind == FIELD_NAME || rule[i].kind == FIELD_OP || rule[i].kind == FIELD_PAYLOAD)
            assert_int_equal(field->type, PROTOBUF_C_TYPE_BYTES);
        if (rule[i].scope == LIMIT_EACH || rule[i].scope == LIMIT_TOTAL)
            assert_int_equal(field->label, PROTOBUF_C_LABEL_REPEATED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_are_read_in_their_one_form),
        cmocka_unit_test(malformed_bytes_are_refused_with_their_place),
        cmocka_unit_test(data_types_beyond_32_bits_are_refused),
        cmocka_unit_test(unknown_fields_and_any_order_are_accepted),
        cmocka_unit_test(the_empty_file_is_an_empty_message),
        cmocka_unit_test(repeated_scalars_may_be_packed_or_not),
        cmocka_unit_test(a_choice_is_made_once),
        cmocka_unit_test(nesting_is_bounded_through_every_cycle),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(bombs_end_quickly),
        cmocka_unit_test(every_prefix_ends_cleanly),
        cmocka_unit_test(every_model_of_the_suites_is_accepted),
        cmocka_unit_test(every_rule_names_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
