#include "hostile/sketch.h"

#include <ctype.h>

enum { NAME = 256, MOST_GRAPHS = 64, DEEPEST = 40, MOST_FILL = 1 << 20 };

typedef struct Part {
    Bytes bytes;
    char name[NAME];
    bool function;
} Part;

typedef struct Sketch {
    const char *at;
    Bytes model;
    Part open[DEEPEST]; /* graphs that were begun; the first is the model's */
    int depth;
    Part graphs[MOST_GRAPHS];
    int n_graphs;
    bool has_opset;
} Sketch;

static _Noreturn void wrong(const Sketch *s, const char *what)
{
    fprintf(stderr, "sketch: %s at: %.60s\n", what, s->at);
    abort();
}

static void blanks(Sketch *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static bool accept(Sketch *s, char c)
{
    blanks(s);
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

static void want(Sketch *s, char c)
{
    if (!accept(s, c))
        wrong(s, (char[]){ c, ' ', 'i', 's', ' ', 'm', 'i', 's', 's', 'i', 'n', 'g', 0 });
}

/* A word up to a blank or one of `ends`; may be empty. */
static void word(Sketch *s, const char *ends, char *out)
{
    size_t n = 0;
    blanks(s);
    for (; *s->at && !isspace((unsigned char)*s->at) && !strchr(ends, *s->at); s->at++)
        if (n + 1 < NAME)
            out[n++] = *s->at;
    out[n] = '\0';
}

static Bytes *body(Sketch *s)
{
    return &s->open[s->depth].bytes;
}

/* ---- types and tensors ---- */

typedef struct Tensor_ {
    int dtype, rank;
    bool shaped;
    char dims[64][NAME];
} Shape;

static int dtype_code(const char *name)
{
    static const char *const names[] = {
        "undefined", "f32", "u8",  "i8",     "u16",  "i16",  "i32",  "i64",    "str",      "bool",
        "f16",       "f64", "u32", "u64",    "c64",  "c128", "bf16", "e4m3",   "e4m3fnuz", "e5m2",
        "e5m2fnuz",  "u4",  "i4",  "f4e2m1", "e8m0", "u2",   "i2",   "f6e2m3", "f6e3m2",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return atoi(name);
}

static Shape shape(Sketch *s)
{
    Shape t = { 0 };
    char name[NAME];
    word(s, "[;=)", name);
    t.dtype = dtype_code(name);
    if (*s->at != '[')
        return t;
    t.shaped = true;
    s->at++;
    while (!accept(s, ']')) {
        if (t.rank == 64)
            wrong(s, "too many dimensions");
        word(s, ",]", t.dims[t.rank++]);
        accept(s, ',');
    }
    return t;
}

static Bytes shape_proto(const Shape *t)
{
    Bytes tensor = { 0 }, dims = { 0 };
    put_int(&tensor, 1, (uint64_t)t->dtype);
    for (int i = 0; i < t->rank; i++) {
        Bytes dim = { 0 };
        const char *d = t->dims[i];
        if (*d == '-' || isdigit((unsigned char)*d))
            put_int(&dim, 1, (uint64_t)strtoll(d, NULL, 0));
        else if (*d)
            put_text(&dim, 2, d);
        put_message(&dims, 1, dim);
    }
    if (t->shaped)
        put_message(&tensor, 2, dims);
    return tensor;
}

/* seq(TYPE) and optional(TYPE) nest as deep as the text of a test does. */
static Bytes type_proto(Sketch *s)
{
    static const struct {
        const char *name;
        uint32_t field;
    } outer[] = { { "seq(", 4 }, { "optional(", 9 } };
    Bytes type = { 0 };
    blanks(s);
    for (size_t i = 0; i < COUNT(outer); i++) {
        if (strncmp(s->at, outer[i].name, strlen(outer[i].name)) != 0)
            continue;
        Bytes wrapped = { 0 };
        s->at += strlen(outer[i].name);
        put_message(&wrapped, 1, type_proto(s));
        want(s, ')');
        put_message(&type, outer[i].field, wrapped);
        return type;
    }
    const Shape t = shape(s);
    put_message(&type, 1, shape_proto(&t));
    return type;
}

static size_t put_value(Bytes *raw, int dtype, const char *text)
{
    static const uint8_t sizes[] = { 8, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const size_t size = dtype >= 0 && (size_t)dtype < COUNT(sizes) ? sizes[dtype] : 1;
    const float f = strtof(text, NULL);
    const double d = strtod(text, NULL);
    const uint64_t u[2] = { *text == '-' ? (uint64_t)strtoll(text, NULL, 0) : strtoull(text, NULL, 0), 0 };
    put(raw, dtype == 1 ? (const void *)&f : dtype == 11 ? (const void *)&d : (const void *)u, size);
    return size;
}

static Bytes tensor_proto(Sketch *s, const char *name)
{
    Bytes t = { 0 }, raw = { 0 };
    char value[NAME];
    const Shape type = shape(s);
    int64_t count = 1, n = 0;
    for (int i = 0; i < type.rank; i++) {
        put_int(&t, 1, (uint64_t)strtoll(type.dims[i], NULL, 0));
        count = __builtin_mul_overflow(count, strtoll(type.dims[i], NULL, 0), &count) ? MOST_FILL : count;
    }
    put_int(&t, 2, (uint64_t)type.dtype);
    if (name)
        put_text(&t, 8, name);
    if (accept(s, '=')) {
        do {
            word(s, ",;*)", value);
            if (*value)
                put_value(&raw, type.dtype, value);
            n++;
        } while (accept(s, ','));
        if (accept(s, '*'))
            for (; n < count && n < MOST_FILL; n++)
                put_value(&raw, type.dtype, value);
        put_message(&t, 9, raw);
    }
    return t;
}

/* ---- nodes ---- */

static Bytes *graph_named(Sketch *s, const char *name)
{
    for (int i = 0; i < s->n_graphs; i++)
        if (strcmp(s->graphs[i].name, name) == 0)
            return &s->graphs[i].bytes;
    wrong(s, "no such graph");
}

static void put_ints(Sketch *s, Bytes *a)
{
    char value[NAME];
    do {
        word(s, ",;", value);
        if (*value)
            put_int(a, 8, (uint64_t)strtoll(value, NULL, 0));
    } while (accept(s, ','));
}

static void put_floats(Sketch *s, Bytes *a)
{
    char value[NAME];
    do {
        word(s, ",;", value);
        const float f = strtof(value, NULL);
        put_key(a, 7, 5);
        put(a, &f, 4);
    } while (accept(s, ','));
}

static void put_texts(Sketch *s, Bytes *a)
{
    char value[NAME];
    do {
        word(s, ",;", value);
        put_text(a, 9, value);
    } while (accept(s, ','));
}

/* KIND!N:VALUE */
static void attribute_value(Sketch *s, Bytes *a)
{
    static const struct {
        const char *name;
        int type;
    } kinds[] = { { "f", 1 },  { "i", 2 },  { "s", 3 },  { "t", 4 },   { "g", 5 },
                  { "fs", 6 }, { "is", 7 }, { "ss", 8 }, { "tp", 13 }, { "ref", 2 } };
    char kind[NAME], value[NAME];
    size_t k = 0;
    word(s, ":!;", kind);
    while (k < COUNT(kinds) && strcmp(kinds[k].name, kind) != 0)
        k++;
    if (k == COUNT(kinds))
        wrong(s, "an attribute of no kind");
    int type = kinds[k].type;
    if (accept(s, '!')) {
        word(s, ":", value);
        type = atoi(value);
    }
    want(s, ':');
    put_int(a, 20, (uint64_t)type);
    switch (kinds[k].type == 2 && kind[0] == 'r' ? 0 : kinds[k].type) {
    case 0:
        word(s, ";", value);
        put_text(a, 21, value);
        break;
    case 1: {
        word(s, ";", value);
        const float f = strtof(value, NULL);
        put_key(a, 2, 5);
        put(a, &f, 4);
        break;
    }
    case 2:
        word(s, ";", value);
        put_int(a, 3, (uint64_t)strtoll(value, NULL, 0));
        break;
    case 3:
        word(s, ";", value);
        put_text(a, 4, value);
        break;
    case 4:
        put_message(a, 5, tensor_proto(s, NULL));
        break;
    case 5:
        word(s, ";", value);
        put_bytes(a, 6, graph_named(s, value)->p, graph_named(s, value)->n);
        break;
    case 6:
        put_floats(s, a);
        break;
    case 7:
        put_ints(s, a);
        break;
    case 8:
        put_texts(s, a);
        break;
    default:
        put_message(a, 14, type_proto(s));
        break;
    }
}

static void node(Sketch *s)
{
    Bytes n = { 0 };
    char name[NAME];
    do {
        word(s, ",=;", name);
        put_text(&n, 2, name);
    } while (accept(s, ','));
    want(s, '=');
    word(s, "(", name);
    const char *colon = strchr(name, ':'); /* domain:Op */
    put_text(&n, 4, colon ? colon + 1 : name);
    if (colon)
        put_bytes(&n, 7, name, (size_t)(colon - name));
    want(s, '(');
    if (!accept(s, ')')) {
        do {
            word(s, ",)", name);
            put_text(&n, 1, name);
        } while (accept(s, ','));
        want(s, ')');
    }
    for (blanks(s); *s->at && *s->at != ';'; blanks(s)) {
        Bytes a = { 0 };
        word(s, "=;", name);
        put_text(&a, 1, name);
        want(s, '=');
        attribute_value(s, &a);
        put_message(&n, 5, a);
    }
    put_message(body(s), s->open[s->depth].function ? 7 : 1, n);
}

/* ---- statements ---- */

static void value_info(Sketch *s, uint32_t field)
{
    Bytes v = { 0 };
    char name[NAME];
    word(s, ";", name);
    put_text(&v, 1, name);
    blanks(s);
    if (*s->at && *s->at != ';')
        put_message(&v, 2, type_proto(s));
    put_message(body(s), field, v);
}

static Bytes opset_proto(const char *domain, const char *version)
{
    Bytes o = { 0 };
    if (*domain)
        put_text(&o, 1, domain);
    if (*version)
        put_int(&o, 2, (uint64_t)strtoll(version, NULL, 0));
    return o;
}

static void opset(Sketch *s)
{
    char first[NAME], second[NAME];
    word(s, ";", first);
    word(s, ";", second);
    s->has_opset = true;
    if (strcmp(first, "none") == 0)
        return;
    const bool named = *second || !(isdigit((unsigned char)*first) || *first == '-');
    put_message(&s->model, 8, named ? opset_proto(first, second) : opset_proto("", first));
}

static void begin(Sketch *s, bool function)
{
    Part *p = &s->open[++s->depth];
    char name[NAME];
    *p = (Part){ .function = function };
    word(s, ";", p->name);
    if (!function) {
        put_text(&p->bytes, 2, p->name);
        return;
    }
    put_text(&p->bytes, 1, p->name);
    put_text(&p->bytes, 10, "local");
    put_message(&p->bytes, 9, opset_proto("", "24"));
    put_message(&p->bytes, 9, opset_proto("local", "1"));
    while (!accept(s, '-')) {
        word(s, ",;-", name);
        put_text(&p->bytes, 4, name);
        accept(s, ',');
    }
    want(s, '>');
    do {
        word(s, ",;", name);
        put_text(&p->bytes, 5, name);
    } while (accept(s, ','));
}

static void end(Sketch *s)
{
    const Part p = s->open[s->depth--];
    if (s->depth < 0 || s->n_graphs == MOST_GRAPHS)
        wrong(s, "nothing to end");
    if (p.function)
        put_message(&s->model, 25, p.bytes);
    else
        s->graphs[s->n_graphs++] = p;
}

static void initializer(Sketch *s)
{
    char name[NAME];
    word(s, ";", name);
    put_message(body(s), 5, tensor_proto(s, name));
}

static void statement(Sketch *s)
{
    const char *from = s->at;
    char first[NAME];
    word(s, ";", first);
    if (strcmp(first, "opset") == 0)
        opset(s);
    else if (strcmp(first, "in") == 0)
        value_info(s, 11);
    else if (strcmp(first, "out") == 0)
        value_info(s, 12);
    else if (strcmp(first, "vi") == 0)
        value_info(s, 13);
    else if (strcmp(first, "init") == 0)
        initializer(s);
    else if (strcmp(first, "graph") == 0 || strcmp(first, "func") == 0)
        begin(s, first[0] == 'f');
    else if (strcmp(first, "end") == 0)
        end(s);
    else if (*first) {
        s->at = from;
        node(s);
    }
}

Bytes sketch_model(const char *text)
{
    Sketch *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->at = text;
    put_int(&s->model, 1, 10);
    put_text(body(s), 2, "g");
    for (;;) {
        statement(s);
        if (!accept(s, ';')) {
            blanks(s);
            if (*s->at)
                wrong(s, "; is missing");
            break;
        }
    }
    if (s->depth)
        wrong(s, "end is missing");
    if (!s->has_opset)
        put_message(&s->model, 8, opset_proto("", "24"));
    put_message(&s->model, 7, s->open[0].bytes);
    for (int i = 0; i < s->n_graphs; i++)
        free(s->graphs[i].bytes.p);
    const Bytes model = s->model;
    free(s);
    return model;
}
