/* Large constants beside the text: written, found again, and refused when the file lies. */
#include "support/language.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "unit/check.h"

typedef struct Folder {
    char path[64], text[96], blobs[112];
} Folder;

static void folder_open(Folder *f)
{
    strcpy(f->path, "/tmp/qcc-blob-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->text, sizeof f->text, "%s/g.qir", f->path);
    snprintf(f->blobs, sizeof f->blobs, "%s.safetensors", f->text);
}

static void folder_close(Folder *f)
{
    unlink(f->text);
    unlink(f->blobs);
    assert_int_equal(rmdir(f->path), 0); /* nothing temporary stayed */
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static const char text[] = "graph @f(state %w: f32[10,10] = @blob(\"w\")) -> () {\n"
                           "    const %a: f32[100] = @blob(\"w#2\")\n"
                           "    const %b: i4[101] = @blob(\"four bits\")\n"
                           "    const %c: bf16[5,15] = @blob(\"c\")\n"
                           "    const %d: f32[10,10] = @blob(\"w\")\n"
                           "    const %e: string[1] = @blob(\"words\")\n"
                           "    const %f: f32[0,70] = []\n"
                           "}\n";

static Blobs samples(Language *l)
{
    Blobs b;
    blobs_open(&b, &l->arena);
    static const struct {
        const char *name;
        DType dtype;
        int64_t rank, dims[2];
    } rows[] = { { "w", F32, 2, { 10, 10 } },
                 { "w", F32, 1, { 100 } },
                 { "four bits", I4, 1, { 101 } },
                 { "c", BF16, 2, { 5, 15 } } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const Type *type = type_tensor(&l->ir.types, rows[i].dtype, (int)rows[i].rank, rows[i].dims);
        Tensor *t = tensor_new(&l->arena, type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, (double)((k + (int64_t)i) % 8));
        blobs_add(&b, payload_of(&l->arena, t), rows[i].name);
    }
    return b;
}

static void what_is_written_is_found(void **state)
{
    (void)state;
    Language l;
    Folder f;
    language_open(&l);
    folder_open(&f);
    Blobs written = samples(&l);
    assert_int_equal(blobs_write(&written, &l.ir, f.blobs), OK);
    write_bytes(f.text, text, sizeof text - 1);

    Module *m;
    check_that(parse_file(&l.ir, &l.arena, f.text, &l.source, &m) == OK, "%s", text_get(&l.messages));
    Blobs again;
    blobs_open(&again, &l.arena);
    assert_string_equal(language_print(&l, m, &again), text);
    assert_int_equal(again.n, 5); /* the strings are named, too */
    for (size_t i = 0; i < written.n; i++) {
        const Tensor *t = payload_cached(again.list[i].payload, &l.diag);
        assert_string_equal(again.list[i].name, written.list[i].name);
        assert_true(t && tensor_same(t, written.list[i].payload->tensor));
    }
    Node *d = m->graphs[0]->last->prev->prev;
    assert_ptr_equal(node_payload(d), ((const ValueAttr *)m->graphs[0]->inputs[0]->attr)->value);
    folder_close(&f);
    language_close(&l);
}

static void names_are_made_unique(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Blobs b = samples(&l);
    assert_string_equal(b.list[1].name, "w#2");
    assert_string_equal(blobs_add(&b, b.list[1].payload, "other"), "w#2");
    Payload nameless = *b.list[0].payload, reserved = nameless;
    assert_string_equal(blobs_add(&b, &nameless, "\xff"), "constant");
    assert_string_equal(blobs_add(&b, &reserved, "__metadata__"), "constant#2");
    language_close(&l);
}

static void types_are_checked(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Blobs b = samples(&l);
    assert_null(language_parse(&l, "graph @f() -> () {\n  const %a: f32[99] = @blob(\"w#2\")\n}", &b));
    assert_string_equal(text_get(&l.messages), "test.qir:2:29: blob \"w#2\" is f32[100], not f32[99]\n"
                                               "      const %a: f32[99] = @blob(\"w#2\")\n"
                                               "                                ^\n");
    language_close(&l);
}

/* A file with that header and 16 bytes of data. */
static void check_refused(const char *header, int64_t length, const char *says)
{
    Language l;
    Folder f;
    Text bytes;
    Blobs b;
    language_open(&l);
    folder_open(&f);
    text_open(&bytes, &l.arena);
    const uint64_t n = length < 0 ? strlen(header) : (uint64_t)length;
    text_bytes(&bytes, &n, 8);
    text_add(&bytes, header);
    text_bytes(&bytes, "0123456789abcdef", 16);
    write_bytes(f.blobs, bytes.p, bytes.n);
    blobs_open(&b, &l.arena);
    const Status status = blobs_read(&b, &l.ir, f.blobs);
    if (!says)
        check_that(status == OK && b.n == 1, "%s", text_get(&l.messages));
    else
        check_that(status == INVALID && strstr(text_get(&l.messages), says), "%s: %s", header,
                   status ? text_get(&l.messages) : "accepted");
    folder_close(&f);
    language_close(&l);
}

static void lies_are_refused(void **state)
{
    (void)state;
#define ENTRY(dtype, shape, offsets)                                                                                   \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    check_refused(ENTRY("F32", "[2,2]", "[0,16]"), -1, NULL);
    check_refused("{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}  ",
                  -1, NULL);
    check_refused(ENTRY("U8", "[]", "[15,16]"), -1, "behind a gap");
    check_refused(ENTRY("U8", "[15]", "[0,15]"), -1, "bytes follow");
    check_refused("{\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":[4,16]}}",
                  -1, "tensor a: overlaps");
    check_refused("{\"__metadata__\":[]}", -1, "__metadata__ is no object");
    check_refused("{\"__metadata__\":{\"k\":1}}", -1, "more than strings");
    check_refused(ENTRY("F32", "[2,2]", "[0,15]"), -1, "do not fit");
    check_refused(ENTRY("F32", "[2,2]", "[1,17]"), -1, "outside the file");
    check_refused(ENTRY("F32", "[2,2]", "[-1,15]"), -1, "outside the file");
    check_refused(ENTRY("F32", "[2,2]", "[16,0]"), -1, "outside the file");
    check_refused(ENTRY("F32", "[2,2]", "[0]"), -1, "not two integers");
    check_refused(ENTRY("F32", "[2,2]", "[0.0,16.0]"), -1, "not two integers");
    check_refused(ENTRY("F33", "[2,2]", "[0,16]"), -1, "dtype or shape");
    check_refused(ENTRY("F32", "[2,-2]", "[0,16]"), -1, "dtype or shape");
    check_refused(ENTRY("F32", "[4294967296,4294967296,4294967296]", "[0,16]"), -1, "dtype or shape");
    check_refused(ENTRY("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4]", "[0,16]"), -1, "dtype or shape");
    check_refused(ENTRY("F32", "\"four\"", "[0,16]"), -1, "dtype or shape");
    check_refused("{\"a\":1}", -1, "dtype or shape");
    check_refused("[]", -1, "no object");
    check_refused("{", -1, "no JSON");
    check_refused("{\"a\":{},\"a\":{}}", -1, "no JSON");
    check_refused("{\"a\":[[[[[]]]]]}", -1, "nests too deep");
    check_refused("{}", 1000, "length of the header");
    check_refused("{}", INT64_MAX, "length of the header");
#undef ENTRY
}

static void a_file_that_changes_is_noticed(void **state)
{
    (void)state;
    Language l;
    Folder f;
    Blobs b;
    language_open(&l);
    folder_open(&f);
    Blobs written = samples(&l);
    assert_int_equal(blobs_write(&written, &l.ir, f.blobs), OK);
    blobs_open(&b, &l.arena);
    assert_int_equal(blobs_read(&b, &l.ir, f.blobs), OK);
    assert_int_equal(truncate(f.blobs, 100), 0);
    assert_null(payload_cached(b.list[0].payload, &l.diag));
    assert_non_null(strstr(text_get(&l.messages), "has changed"));
    folder_close(&f);
    language_close(&l);
}

static void files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    Language l;
    Folder f;
    Str bytes;
    FileOut out;
    language_open(&l);
    folder_open(&f);
    assert_int_equal(file_create(&out, &l.arena, &l.diag, f.text), OK);
    assert_int_equal(file_write(&out, "ab", 2), OK);
    assert_false(file_exists(f.text));
    file_drop(&out);
    assert_false(file_exists(f.text));
    assert_int_equal(file_create(&out, &l.arena, &l.diag, f.text), OK);
    assert_int_equal(file_write(&out, "abc", 3), OK);
    assert_int_equal(file_keep(&out), OK);
    assert_int_equal(file_read(&l.arena, &l.diag, f.text, 3, "model_bytes", &bytes), OK);
    assert_true(str_is(bytes, "abc"));
    assert_int_equal(file_read(&l.arena, &l.diag, f.text, 2, "model_bytes", &bytes), INVALID);
    assert_non_null(strstr(text_get(&l.messages), "(limit model_bytes)"));
    assert_int_equal(file_read(&l.arena, &l.diag, f.path, 2, "model_bytes", &bytes), IO);
    assert_int_equal(file_read(&l.arena, &l.diag, "/nowhere/x", 2, "model_bytes", &bytes), IO);
    assert_int_equal(file_create(&out, &l.arena, &l.diag, "/nowhere/x"), IO);
    folder_close(&f);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_found),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(types_are_checked),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(a_file_that_changes_is_noticed),
        cmocka_unit_test(files_appear_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
