/* M23 to M26: tensors that are not what they say. */
#include "hostile/corpus.h"

/* clang-format off */
static const SketchCase dims[] = {
    { "-1", 3, "negative", "init w f32[-1]=1; out w" },
    { "INT64_MIN", 3, "negative", "init w f32[-9223372036854775808]=1; out w" },
    { "0 and nothing", 0, NULL, "init w f32[0,7]; out w" },
    { "0 and something", 3, "raw_data has 4 bytes where the shape needs 0", "init w f32[0]=1; out w" },
    { "INT64_MAX", 3, "limit dim", "init w f32[9223372036854775807]=1; out w" },
    { "2^40 + 1", 3, "limit dim", "init w u8[1099511627777]=1; out w" },
    { "a product that wraps to 0", 3, "limit elements", "init w f32[4294967296,4294967296]=1; out w" },
    { "a product that wraps to 4", 3, "limit elements", "init w u8[1099511627776,1099511627776,1099511627776,4]=1; out w" },
    { "a product that fits and bytes that wrap", 3, "limit elements", "init w f64[1099511627776,2097152]=1; out w" },
    { "0 beside what wraps", 3, "limit elements", "init w f32[1099511627776,1099511627776,0]; out w" },
    { "0 beside a negative one", 3, "negative", "init w f32[0,-5]; out w" },
    { "2^46 elements, no bytes", 3, "dimension 0, 70368744177664, exceeds the limit dim (1099511627776)", "init w u8[70368744177664]; out w" },
    { "2^46 elements of 4 bits, one byte", 3, "dimension 0, 70368744177664, exceeds the limit dim (1099511627776)", "init w u4[70368744177664]=1; out w" },
    { "4 bits, odd", 0, NULL, "init w u4[3]=0x21,0x03; y = Cast(w) to=i:6; out y" },
    { "4 bits, rounded down", 3, "raw_data has 1 bytes where the shape needs 2", "init w u4[3]=0x21; out w" },
    { "2 bits, odd", 0, NULL, "init w u2[5]=0xe4,0x01; y = Cast(w) to=i:6; out y" },
    { "rank 17", 3, "rank", "init w f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]=1; out w" },
    { "rank 60", 3, "rank", "init w f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]=1; out w" },
    { "in an attribute, too", 3, "negative", "y = Constant() value=t:f32[-1]=1; out y" },
    { "in a region, too", 3, "negative", "in c bool[]; graph a; init w f32[-3]=1; out w; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
};

static const SketchCase payloads[] = {
    { "one byte short", 3, "raw_data", "init w u8[3]=1,2; out w" },
    { "one byte long", 3, "raw_data", "init w u8[3]=1,2,3,4; out w" },
    { "one element short", 3, "raw_data", "init w f32[3]=1,2; out w" },
    { "one element long", 3, "raw_data", "init w f32[3]=1,2,3,4; out w" },
    { "no data", 3, "3 elements are declared and none are stored", "init w f32[3]; out w" },
    { "type 0", 3, "element type 0 does not exist", "init w undefined[3]=1,2,3; out w" },
    { "type 29", 3, "element type 29 does not exist", "init w 29[3]=1,2,3; out w" },
    { "type 999", 3, "element type 999 does not exist", "init w 999[3]=1,2,3; out w" },
    { "type -1", 3, "element type -1 does not exist", "init w -1[3]=1,2,3; out w" },
    { "complex numbers", 4, "element type 14 (complex) is not one we have", "init w c64[1]=1; y = Identity(w); out y" },
    { "complex numbers of 128 bits", 4, "element type 15 (complex) is not one we have", "init w c128[1]=1; y = Identity(w); out y" },
    { "strings in raw_data", 3, "1 elements are declared and none are stored", "init w str[1]=1; y = Identity(w); out y" },
    { "f8 of every kind", 0, NULL, "init a e4m3[2]=0x7f,0x80; init b e4m3fnuz[2]=0x7f,0x80; init d e5m2[2]=0x7f,0xfc; init e e5m2fnuz[2]=0x7f,0x80; init f e8m0[2]=0xff,0; p = Cast(a) to=i:1; q = Cast(b) to=i:1; r = Cast(d) to=i:1; s = Cast(e) to=i:1; t = Cast(f) to=i:1; out p; out q; out r; out s; out t" },
    { "a bool of 2", 3, "bool of value 2", "init w bool[2]=2,255; y = Not(w); z = Cast(w) to=i:6; out y; out z" },
    { "of an attribute, one byte short", 3, "raw_data", "y = Constant() value=t:u8[3]=1,2; out y" },
};

static const SketchCase raw[] = {
    { "3 bytes for one", 3, "raw_data", "init w 2[1]=1,2,3; out w" },
    { "7 bytes for one f64", 3, "raw_data has", "init w f64[0]=1; out w" },
};
/* clang-format on */

typedef struct Field {
    uint32_t number;
    const char *bytes;
    size_t n;
    int repeat; /* as a varint each, where > 0 */
} Field;

/* A model that gives out one tensor of these fields. */
static Bytes tensor_model(int dtype, int64_t n, const Field *fields, size_t n_fields)
{
    Bytes model = { 0 }, set = { 0 }, graph = { 0 }, t = { 0 }, out = { 0 };
    put_int(&t, 1, (uint64_t)n);
    put_int(&t, 2, (uint64_t)dtype);
    put_text(&t, 8, "w");
    for (size_t i = 0; i < n_fields; i++) {
        if (fields[i].repeat)
            for (int k = 0; k < fields[i].repeat; k++)
                put_int(&t, fields[i].number, (uint64_t)k);
        else
            put_bytes(&t, fields[i].number, fields[i].bytes, fields[i].n);
    }
    put_message(&graph, 5, t);
    put_text(&out, 1, "w");
    put_message(&graph, 12, out);
    put_int(&set, 2, 24);
    put_int(&model, 1, 10);
    put_message(&model, 8, set);
    put_message(&model, 7, graph);
    return model;
}

static void storages(Corpus *c)
{
    static const Field twice[] = { { 9, "abcdefgh", 8, 0 }, { 4, "abcdefgh", 8, 0 } };
    static const Field wrong[] = { { 7, NULL, 0, 2 } };
    static const Field more[] = { { 5, NULL, 0, 3 } };
    static const Field one[] = { { 5, NULL, 0, 1 } };
    static const Field wide[] = { { 5, "\x80\x02", 2, 0 } };
    corpus_bytes(c, "raw_data and float_data", 3, "both hold elements", tensor_model(1, 2, twice, 2));
    corpus_bytes(c, "floats in int64_data", 3, "cannot hold elements of type 1", tensor_model(1, 2, wrong, 1));
    corpus_bytes(c, "one integer too many", 3, "more than the 2 values", tensor_model(6, 2, more, 1));
    corpus_bytes(c, "one integer too few", 3, "at most 1 values", tensor_model(6, 2, one, 1));
    corpus_bytes(c, "256 as u8", 3, "outside", tensor_model(2, 1, wide, 1));
    corpus_bytes(c, "256 as bool", 3, "outside", tensor_model(9, 1, wide, 1));
    corpus_bytes(c, "256 as packed u4", 3, "outside", tensor_model(21, 2, wide, 1));
}

/* Every length of raw data near what is right, for every size of element, at every alignment. */
static void raw_lengths(Corpus *c)
{
    static const struct {
        int dtype, size;
    } types[] = { { 2, 1 }, { 10, 2 }, { 1, 4 }, { 11, 8 } };
    static const char bytes[64];
    for (size_t i = 0; i < COUNT(types); i++) {
        for (int n = 0; n <= 3 * types[i].size + 1; n++) {
            const Field field = { 9, bytes, (size_t)n, 0 };
            const bool right = n == 3 * types[i].size;
            corpus_bytes(c, "a length", right ? 0 : 3,
                         right ? NULL
                         : n   ? "raw_data has"
                               : "",
                         tensor_model(types[i].dtype, 3, &field, 1));
        }
    }
    for (int shift = 0; shift < 9; shift++) {
        const Field doc = { 12, bytes, (size_t)shift, 0 }, data = { 9, bytes, 24, 0 };
        corpus_bytes(c, "an alignment", 0, NULL, tensor_model(11, 3, (Field[]){ doc, data }, 2));
    }
}

/* ---- sparse ---- */

typedef struct Sparse {
    const char *name;
    int want;
    const char *says;
    int64_t dims[3];
    int rank;
    int64_t nnz;
    int64_t indices[6];
    int n_indices, index_rank;
} Sparse;

static const Sparse sparse[] = {
    { "as it should be", 0, NULL, { 2, 3 }, 2, 2, { 1, 4 }, 2, 1 },
    { "by coordinates", 0, NULL, { 2, 3 }, 2, 2, { 0, 1, 1, 1 }, 4, 2 },
    { "not sorted", 3, "not in ascending order", { 2, 3 }, 2, 2, { 4, 1 }, 2, 1 },
    { "twice the same", 3, "not in ascending order", { 2, 3 }, 2, 2, { 1, 1 }, 2, 1 },
    { "out of range", 3, "outside the tensor", { 2, 3 }, 2, 2, { 1, 6 }, 2, 1 },
    { "a coordinate out of range", 3, "outside the tensor", { 2, 3 }, 2, 2, { 0, 1, 0, 3 }, 4, 2 },
    { "negative", 3, "outside the tensor", { 2, 3 }, 2, 2, { -1, 4 }, 2, 1 },
    { "INT64_MIN", 3, "outside the tensor", { 2, 3 }, 2, 2, { INT64_MIN, 4 }, 2, 1 },
    { "fewer indices than values", 3, "2 values have indices i64[1]", { 2, 3 }, 2, 2, { 1 }, 1, 1 },
    { "more indices than values", 3, "1 values have indices i64[2]", { 2, 3 }, 2, 1, { 1, 2 }, 2, 1 },
    { "more values than elements", 3, "outside the tensor", { 1 }, 1, 3, { 0, 1, 2 }, 3, 1 },
    { "a product that wraps", 3, "limit elements", { INT64_C(1) << 40, INT64_C(1) << 40 }, 2, 1, { 1 }, 1, 1 },
    { "2^46 zeros", 3, "limit fold_total", { INT64_C(1) << 40, 64 }, 2, 1, { 1 }, 1, 1 },
    { "2^33 zeros", 3, "limit fold_total", { INT64_C(1) << 33 }, 1, 1, { 1 }, 1, 1 },
    { "a negative dimension", 3, "dimension 0 is -2", { -2, 3 }, 2, 1, { 1 }, 1, 1 },
    { "no dimensions", 0, NULL, { 0 }, 0, 1, { 0 }, 1, 1 },
    { "no elements", 0, NULL, { 0, 3 }, 2, 0, { 0 }, 0, 1 },
};

static Bytes sparse_model(const Sparse *s)
{
    static const float values[8] = { 1, 2, 3, 4 };
    Bytes model = { 0 }, set = { 0 }, graph = { 0 }, v = { 0 }, i = { 0 }, t = { 0 }, out = { 0 };
    put_int(&v, 1, (uint64_t)s->nnz);
    put_int(&v, 2, 1);
    put_text(&v, 8, "w");
    put_bytes(&v, 9, values, (size_t)s->nnz * 4);
    put_int(&i, 1, (uint64_t)(s->n_indices / s->index_rank));
    if (s->index_rank > 1)
        put_int(&i, 1, (uint64_t)s->index_rank);
    put_int(&i, 2, 7);
    put_bytes(&i, 9, s->indices, (size_t)s->n_indices * 8);
    put_message(&t, 1, v);
    put_message(&t, 2, i);
    for (int k = 0; k < s->rank; k++)
        put_int(&t, 3, (uint64_t)s->dims[k]);
    put_message(&graph, 15, t);
    put_text(&out, 1, "w");
    put_message(&graph, 12, out);
    put_int(&set, 2, 24);
    put_message(&model, 8, set);
    put_message(&model, 7, graph);
    return model;
}

void tensor_classes(Corpus *c)
{
    if (c->large)
        return;
    if (corpus_class(c, 23))
        corpus_sketches(c, dims, COUNT(dims));
    if (corpus_class(c, 24)) {
        corpus_sketches(c, payloads, COUNT(payloads));
        storages(c);
    }
    if (corpus_class(c, 25)) {
        corpus_sketches(c, raw, COUNT(raw));
        raw_lengths(c);
    }
    if (corpus_class(c, 26))
        for (size_t i = 0; i < COUNT(sparse); i++)
            corpus_bytes(c, sparse[i].name, sparse[i].want, sparse[i].says, sparse_model(&sparse[i]));
}
