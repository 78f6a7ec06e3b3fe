/* M01 to M10: bytes that are no messages, or too many of them. */
#include "hostile/corpus.h"

static const char small[] = "opset 20; in x f32[2,n]; init w f32[2]=1,2; init i i64[1]=0; vi t f32[2,n];"
                            "t = Unsqueeze(w,i); u = Add(x,x); y = Transpose(u) perm=is:1,0; out y f32[n,2]";
static const char branches[] = "in c bool[]; in x f32[2]; graph a; p = Abs(x); out p f32[2]; end;"
                               "graph b; q = Neg(x); out q f32[2]; end;"
                               "y = If(c) then_branch=g:a else_branch=g:b; out y f32[2]";
static const char called[] = "opset 22; opset local 1; func twice a -> b; b = Add(a,a); end;"
                             "in x f32[2]; y = local:twice(x); out y";

static Bytes hex(const char *digits)
{
    Bytes b = { 0 };
    for (unsigned byte; *digits && sscanf(digits, "%2x", &byte) == 1; digits += 2)
        put(&b, &(uint8_t){ (uint8_t)byte }, 1);
    return b;
}

/* A model whose graph has these bytes behind a good one. */
static Bytes in_graph(Bytes more)
{
    Bytes model = { 0 }, graph = { 0 };
    put_int(&model, 1, 10);
    put(&graph, more.p, more.n);
    free(more.p);
    put_message(&model, 7, graph);
    return model;
}

static void prefixes(Corpus *c)
{
    static const char *const seeds[] = { small, branches, called };
    for (size_t s = 0; s < COUNT(seeds); s++) {
        Bytes whole = sketch_model(seeds[s]);
        qcc_context *cx = corpus_open(c);
        size_t accepted = 0;
        for (size_t n = 0; n < whole.n; n++) {
            qcc_model *m;
            const qcc_source source = qcc_bytes(whole.p, n);
            accepted += qcc_read(cx, &source, NULL, &m) == QCC_OK;
        }
        corpus_judge(c, "all prefixes", accepted == 0, "a prefix is accepted");
        corpus_judge(c, "all prefixes", corpus_close(c, cx), "memory is left");
        c->cases[1]++;
        free(whole.p);
    }
    corpus_bytes(c, "an empty file", 3, "empty", (Bytes){ 0 });
    for (int byte = 0; byte < 256; byte += 15)
        corpus_bytes(c, "one byte", 3, "",
                     hex((const char[]){ "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15], 0 }));
}

static const struct {
    int class;
    const char *name, *hex, *says;
} malformed[] = {
    { 2, "a varint that is padded", "088000", "padded" },
    { 2, "a varint of 70 bits", "08ffffffffffffffffff7f", "64 bits" },
    { 2, "a varint without an end", "08ffffffffffffffffffffffffffffffffffff", "64 bits" },
    { 2, "a length of -1", "12ffffffffffffffffff01", "announced" },
    { 2, "a length of 2^63", "1280808080808080808001", "announced" },
    { 2, "a length of INT_MAX", "12ffffffff07", "announced" },
    { 2, "a length one too long", "12036162", "announced" },
    { 2, "a key of 70 bits", "ffffffffffffffffff7f", "64 bits" },
    { 3, "a group", "0b0c", "wire type 3" },
    { 3, "an end of a group", "0c", "wire type 4" },
    { 3, "wire type 6", "0e00", "wire type 6" },
    { 3, "wire type 7", "0f00", "wire type 7" },
    { 3, "field 0", "0000", "field number 0" },
    { 3, "a field number of 2^61", "f8ffffffffffffff7f00", "" },
    { 6, "a number twice", "08010802", "second time" },
    { 6, "a graph twice", "3a003a00", "second time" },
    { 8, "a fixed number for a varint", "0d00000000", "wire type 5" },
    { 8, "a varint for bytes", "1000", "wire type 0" },
    { 8, "a varint for a message", "3800", "wire type 0" },
    { 8, "64 bits for a message", "390000000000000000", "wire type 1" },
};

static void malformed_bytes(Corpus *c)
{
    for (size_t i = 0; i < COUNT(malformed); i++)
        if (corpus_class(c, malformed[i].class))
            corpus_bytes(c, malformed[i].name, 3, malformed[i].says, hex(malformed[i].hex));
}

/* ---- nesting ---- */

/* `inner`, wrapped so many times in a chain of fields that comes round. */
static Bytes wrapped(Bytes inner, const uint32_t *fields, int n_fields, int times)
{
    const size_t most = inner.n + (size_t)times * 6;
    Bytes b = { malloc(most), most, most };
    size_t at = most - inner.n;
    assert_non_null(b.p);
    if (inner.n)
        memcpy(b.p + at, inner.p, inner.n);
    free(inner.p);
    for (int i = 0; i < times; i++) {
        Bytes head = { 0 };
        put_key(&head, fields[i % n_fields], 2);
        put_varint(&head, most - at);
        at -= head.n;
        memcpy(b.p + at, head.p, head.n);
        free(head.p);
    }
    memmove(b.p, b.p + at, most - at);
    b.n = most - at;
    return b;
}

/* The chain as the whole of a field of the model's graph, or of the model. */
static Bytes hung(Bytes chain, const uint32_t *path, int n)
{
    for (int i = 0; i < n; i++) {
        Bytes outer = { 0 };
        put_message(&outer, path[i], chain);
        chain = outer;
    }
    return chain;
}

static void nesting(Corpus *c)
{
    static const struct {
        const char *name;
        uint32_t fields[4]; /* the innermost first */
        int n;
        uint32_t path[4]; /* from the chain to the model */
        int n_path;
        int want; /* of chains that are short enough */
    } cycles[] = {
        { "graphs in attributes", { 6, 5, 1 }, 3, { 7 }, 1, 4 },
        { "lists of graphs in attributes", { 11, 5, 1 }, 3, { 7 }, 1, 4 },
        { "sequences of sequences", { 1, 4 }, 2, { 2, 11, 7 }, 3, 3 },
        { "maps of maps", { 2, 5 }, 2, { 2, 11, 7 }, 3, 0 },
        { "optionals of optionals", { 1, 9 }, 2, { 2, 11, 7 }, 3, 3 },
        { "types in attributes", { 1, 4 }, 2, { 14, 5, 1, 7 }, 4, 4 },
        { "graphs in functions", { 1, 6, 5 }, 3, { 7, 25 }, 2, 3 },
    };
    static const int depths[] = { 30, 87, 96, 99, 102, 105, 300, 100000 };
    char name[100];
    for (size_t k = 0; k < COUNT(cycles); k++) {
        for (size_t d = 0; d < COUNT(depths); d++) {
            const int n = depths[d] / cycles[k].n * cycles[k].n, deep = n + cycles[k].n_path > 100;
            Bytes chain = wrapped((Bytes){ 0 }, cycles[k].fields, cycles[k].n, n);
            snprintf(name, sizeof name, "%s, %d deep", cycles[k].name, n + cycles[k].n_path);
            const bool graphs = cycles[k].fields[2] != 0; /* 32 of them are too many, before 100 messages are */
            corpus_bytes(c, name, deep || (graphs && n >= 99) ? 3 : cycles[k].want,
                         graphs && n >= 99 ? "limit graph_nesting"
                         : deep            ? "limit wire_nesting"
                         : cycles[k].want  ? ""
                                           : NULL,
                         hung(chain, cycles[k].path, cycles[k].n_path));
        }
    }
}

/* ---- many ---- */

static Bytes many(const char *head, const char *unit, int n, const char *tail)
{
    Bytes b = hex(head), u = hex(unit), t = hex(tail);
    for (int i = 0; i < n; i++)
        put(&b, u.p, u.n);
    put(&b, t.p, t.n);
    free(u.p);
    free(t.p);
    return b;
}

static Bytes many_in_graph(const char *unit, int n)
{
    return in_graph(many("", unit, n, ""));
}

static void millions(Corpus *c)
{
    const int n = c->large ? 10000000 : 300000;
    corpus_bytes(c, "empty nodes", c->large ? 3 : 4, c->large ? "limit nodes" : "1 operator has no meaning here",
                 many_in_graph("0a00", n));
    corpus_bytes(c, "empty initializers", 3, "", many_in_graph("2a00", n));
    corpus_bytes(c, "empty inputs", 3, "", many_in_graph("5a00", n));
    corpus_bytes(c, "empty value infos", c->large ? 3 : 0, c->large ? "limit values" : NULL, many_in_graph("6a00", n));
    corpus_bytes(c, "empty sparse initializers", 3, "", many_in_graph("7a00", n));
    corpus_bytes(c, "empty annotations", 0, NULL, many_in_graph("7200", n));
    corpus_bytes(c, "unknown fields", 3, "", many("", "f83f01", n, ""));
    corpus_bytes(c, "empty functions", 3, "limit functions", many("3a00", "ca0100", n, ""));
    corpus_bytes(c, "empty opset imports", 0, NULL, many("3a00", "4200", n, ""));
    corpus_bytes(c, "empty metadata", 0, NULL, many("3a00", "7200", n, ""));
    corpus_bytes(c, "empty training infos", 0, NULL, many("3a00", "a20100", n, ""));
}

static void repeated(Corpus *c)
{
    const int n = c->large ? 1000000 : 100000;
    corpus_bytes(c, "a graph, again and again", 3, "second time", many("", "3a00", n, ""));
    corpus_bytes(c, "a version, again and again", 3, "second time", many("", "0801", n, ""));
    corpus_bytes(c, "a graph's name, again and again", 3, "second time", many_in_graph("120161", n));
}

static void choices(Corpus *c)
{
    /* input x: type with the arms given */
    static const struct {
        const char *name, *type;
    } cases[] = {
        { "a tensor and a sequence", "0a020801220208010a" },
        { "a tensor twice", "0a0208010a020807" },
        { "a sequence and a map", "220032004a00" },
        { "an optional and a tensor", "4a000a020801" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Bytes value = { 0 }, graph = { 0 };
        put_text(&value, 1, "x");
        put_message(&value, 2, hex(cases[i].type));
        put_message(&graph, 11, value);
        corpus_bytes(c, cases[i].name, 3, "", in_graph(graph));
    }
    Bytes dim = hex("0805120161"), dims = { 0 }, tensor = { 0 }, type = { 0 }, value = { 0 }, graph = { 0 };
    put_message(&dims, 1, dim);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, dims);
    put_message(&type, 1, tensor);
    put_text(&value, 1, "x");
    put_message(&value, 2, type);
    put_message(&graph, 11, value);
    corpus_bytes(c, "a dimension that is a number and a name", 3, "", in_graph(graph));
}

/* ---- packed ---- */

static void packed(Corpus *c)
{
    static const struct {
        const char *name;
        int dtype;
        const char *fields; /* of the tensor, as hex */
        int want;
        const char *says;
    } cases[] = {
        { "floats packed and not", 1, "22040000803f250000004022080000404000008040", 0, NULL },
        { "floats of 7 bytes", 1, "22070000803f000040", 3, "" },
        { "doubles of 12 bytes", 11, "520c000000000000f03f00000000", 3, "" },
        { "integers packed and not", 7, "3a02010238033804", 0, NULL },
        { "an integer cut off in its run", 7, "3a0401020380", 3, "" },
        { "an integer padded in its run", 7,
          "3a05010203"
          "8000",
          3, "" },
        { "an integer of 70 bits in its run", 7, "3a0dffffffffffffffffff7f010203", 3, "" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Bytes graph = { 0 }, t = { 0 }, out = { 0 }, model = { 0 }, set = { 0 }, fields = hex(cases[i].fields);
        put_int(&t, 1, 4);
        put_int(&t, 2, (uint64_t)cases[i].dtype);
        put_text(&t, 8, "w");
        put(&t, fields.p, fields.n);
        free(fields.p);
        put_message(&graph, 5, t);
        put_text(&out, 1, "w");
        put_message(&graph, 12, out);
        put_int(&set, 2, 20);
        put_message(&model, 8, set);
        put_message(&model, 7, graph);
        corpus_bytes(c, cases[i].name, cases[i].want, cases[i].says, model);
    }
}

static Bytes joined(Bytes a, Bytes b)
{
    put(&a, b.p, b.n);
    free(b.p);
    return a;
}

static void around(Corpus *c)
{
    corpus_bytes(c, "zeros behind", 3, "field number 0", joined(sketch_model(small), hex("0000000000")));
    corpus_bytes(c, "text behind", 3, "", joined(sketch_model(small), hex("0a5b0a68656c6c6f")));
    corpus_bytes(c, "the model twice", 3, "second time", joined(sketch_model(small), sketch_model(small)));
    corpus_bytes(c, "an archive before", 3, "", joined(hex("504b0304140000000000"), sketch_model(small)));
    corpus_bytes(c, "a program before", 3, "", joined(hex("7f454c4602010100"), sketch_model(small)));
    corpus_bytes(c, "a script before", 3, "", joined(hex("23212f62696e2f73680a"), sketch_model(small)));
    corpus_bytes(c, "a byte order mark before", 3, "", joined(hex("efbbbf"), sketch_model(small)));
}

void wire_classes(Corpus *c)
{
    if (corpus_class(c, 5))
        millions(c);
    if (corpus_class(c, 6))
        repeated(c);
    if (c->large)
        return;
    if (corpus_class(c, 1))
        prefixes(c);
    malformed_bytes(c);
    if (corpus_class(c, 4))
        nesting(c);
    if (corpus_class(c, 7))
        choices(c);
    if (corpus_class(c, 9))
        packed(c);
    if (corpus_class(c, 10))
        around(c);
}
