/* M11 to M15 and M40: names. */
#include "hostile/corpus.h"

#include <unistd.h>

/* A model y = Op(x) in which one name is these bytes. */
typedef enum Where { VALUE, NODE, OPERATOR, DOMAIN, SYMBOL, GRAPH, INITIALIZER, PLACES } Where;

static const char *const places[] = { "a value",     "a node",  "an operator",   "a domain",
                                      "a dimension", "a graph", "an initializer" };

static void put_name(Bytes *b, uint32_t field, bool odd, const char *plain, const void *name, size_t n)
{
    put_bytes(b, field, odd ? name : plain, odd ? n : strlen(plain));
}

static Bytes value_of(bool odd_name, bool odd_dim, const void *name, size_t n, const char *plain)
{
    Bytes v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };
    put_name(&dim, 2, odd_dim, "n", name, n);
    put_message(&shape, 1, dim);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_name(&v, 1, odd_name, plain, name, n);
    put_message(&v, 2, type);
    return v;
}

static Bytes named(Where where, const void *name, size_t n)
{
    Bytes model = { 0 }, graph = { 0 }, node = { 0 }, w = { 0 }, set = { 0 };
    put_name(&node, 1, where == VALUE, "x", name, n);
    put_name(&node, 1, where == INITIALIZER, "w", name, n);
    put_text(&node, 2, "y");
    put_name(&node, 3, where == NODE, "/node", name, n);
    put_name(&node, 4, where == OPERATOR, "Add", name, n);
    if (where == DOMAIN)
        put_bytes(&node, 7, name, n);
    put_message(&graph, 1, node);
    put_name(&graph, 2, where == GRAPH, "g", name, n);
    put_int(&w, 1, 1);
    put_int(&w, 2, 1);
    put_name(&w, 8, where == INITIALIZER, "w", name, n);
    put_bytes(&w, 9, "\0\0\200?", 4);
    put_message(&graph, 5, w);
    put_message(&graph, 11, value_of(where == VALUE, where == SYMBOL, name, n, "x"));
    put_message(&graph, 12, value_of(false, where == SYMBOL, name, n, "y"));
    put_int(&set, 2, 20);
    put_int(&model, 1, 10);
    put_message(&model, 8, set);
    put_message(&model, 7, graph);
    return model;
}

/* Operators and domains are stricter than other names: what each of them answers. */
static void in_every_place(Corpus *c, const char *name, const char *bytes, size_t n, int in_calls, int elsewhere,
                           const char *says)
{
    char text[200];
    for (int where = 0; where < PLACES; where++) {
        snprintf(text, sizeof text, "%s: %s", places[where], name);
        const bool calls = where == OPERATOR || where == DOMAIN;
        corpus_bytes(c, text, calls ? in_calls : elsewhere,
                     calls       ? says
                     : elsewhere ? says
                                 : NULL,
                     named((Where)where, bytes, n));
    }
}

#define EVERYWHERE(name, text, in_calls, elsewhere, says)                                                              \
    in_every_place(c, name, text, sizeof text - 1, in_calls, elsewhere, says)

static Bytes two_names(const char *a, size_t n_a, const char *b, size_t n_b)
{
    Bytes model = { 0 }, graph = { 0 }, set = { 0 };
    put_message(&graph, 11, value_of(true, false, a, n_a, ""));
    put_message(&graph, 11, value_of(true, false, b, n_b, ""));
    put_message(&graph, 12, value_of(true, false, a, n_a, ""));
    put_int(&set, 2, 20);
    put_message(&model, 8, set);
    put_message(&model, 7, graph);
    return model;
}

static void nul(Corpus *c)
{
    EVERYWHERE("NUL inside", "a\0b", 3, 3, "holds a NUL");
    EVERYWHERE("NUL first", "\0", 3, 3, "holds a NUL");
    corpus_bytes(c, "two names that a NUL makes equal", 3, "holds a NUL", two_names("a\0b", 3, "a\0c", 3));
}

static void utf8(Corpus *c)
{
    EVERYWHERE("a lone continuation", "a\x80", 3, 3, "UTF-8");
    EVERYWHERE("an overlong slash", "\xc0\xaf", 3, 3, "UTF-8");
    EVERYWHERE("a surrogate", "\xed\xa0\x80", 3, 3, "UTF-8");
    EVERYWHERE("beyond Unicode", "\xf4\x90\x80\x80", 3, 3, "UTF-8");
    EVERYWHERE("cut off", "\xe2\x82", 3, 3, "UTF-8");
    EVERYWHERE("a byte order mark",
               "\xef\xbb\xbf"
               "a",
               4, 0, "no meaning here");
    EVERYWHERE("right to left",
               "\xe2\x80\xae"
               "txt",
               4, 0, "no meaning here");
    EVERYWHERE("of no width", "a\xe2\x80\x8b", 4, 0, "no meaning here");
    EVERYWHERE("C1 control",
               "a\xc2\x9b"
               "31m",
               4, 0, "no meaning here");
    corpus_bytes(c, "two names that look alike", 0, NULL, two_names("a", 1, "\xd0\xb0", 2));
}

static void meaningful(Corpus *c)
{
    static char longest[4097];
    memset(longest, 'x', sizeof longest);
    EVERYWHERE("up the folders", "../../etc/passwd", 4, 0, "no meaning here");
    EVERYWHERE("a format", "%n%s%99999999d", 4, 0, "no meaning here");
    EVERYWHERE("the end of a comment", "*/ int main;", 4, 0, "no meaning here");
    EVERYWHERE("a trigraph", "?\?/", 4, 0, "no meaning here");
    EVERYWHERE("an include", "#include \"/dev/zero\"", 4, 0, "no meaning here");
    EVERYWHERE("quotes", "\"'`$(id)", 4, 0, "no meaning here");
    EVERYWHERE("markup", "<script>alert(1)</script>&amp;-->]]>", 4, 0, "no meaning here");
    EVERYWHERE("a backslash at the end", "a\\", 4, 0, "no meaning here");
    EVERYWHERE("a statement of ours", "y = abs(%x)", 4, 0, "no meaning here");
    EVERYWHERE("a line end", "a\nb", 3, 0, "control character 10");
    EVERYWHERE("an escape", "\x1b[31m", 3, 0, "control character 27");
    EVERYWHERE("delete", "a\x7f", 3, 0, "control character 127");
    for (int where = 0; where < PLACES; where++) {
        corpus_bytes(c, "4097 bytes", 3, where == OPERATOR || where == DOMAIN ? "op_bytes" : "name_bytes",
                     named((Where)where, longest, sizeof longest));
        corpus_bytes(c, "4096 bytes", where == OPERATOR || where == DOMAIN ? 3 : 0, NULL,
                     named((Where)where, longest, sizeof longest - 1));
    }
}

/* clang-format off */
static const SketchCase duplicates[] = {
    { "a value twice", 3, "twice", "in x f32[2]; y = Abs(x); y = Neg(x); out y" },
    { "one node, one name twice", 3, "twice", "in x f32[4]; y, y = Split(x) num_outputs=i:2; out y" },
    { "a value named like an input", 3, "twice", "in x f32[2]; x = Abs(x); out x" },
    { "two inputs of one name", 0, NULL, "in x f32[2]; in x f32[3]; y = Abs(x); out y" },
    { "two initializers of one name", 3, "twice", "init w f32[1]=1; init w f32[1]=2; y = Abs(w); out y" },
    { "an initializer named like a value", 3, "twice", "in x f32[1]; init y f32[1]=1; y = Abs(x); out y" },
    { "an output twice", 3, "two results are called", "in x f32[2]; y = Abs(x); out y; out y" },
    { "no names of outputs", 0, NULL, "in x f32[4]; , = Split(x) num_outputs=i:2; y = Abs(x); out y" },
    { "an input of an empty name", 3, "has no type", "in  ; y = Abs(); out y" },
    { "an output of an empty name", 3, "nothing defines it", "in x f32[1]; y = Abs(x); out ;" },
    { "a region that shadows its input", 3, "twice", "in c bool[]; in x f32[2]; graph a; x = Abs(x); out x; end; graph b; z = Neg(x); out z; end; y = If(c) then_branch=g:a else_branch=g:b; out y" },
    { "both branches of one name", 0, NULL, "in c bool[]; in x f32[2]; graph a; z = Abs(x); out z; end; graph b; z = Neg(x); out z; end; y = If(c) then_branch=g:a else_branch=g:b; out y" },
    { "a value of a branch outside", 3, "nothing before", "in c bool[]; in x f32[2]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a else_branch=g:a; w = Abs(z); out w" },
    { "two functions of one name", 3, "twice", "opset 20; opset local 1; func f a -> b; b = Abs(a); end; func f a -> b; b = Neg(a); end; in x f32[1]; y = local:f(x); out y" },
};

static const SketchCase unknown[] = {
    { "an operator that is none", 4, "Frobnicate", "in x f32[2]; y = Frobnicate(x); out y" },
    { "another case", 4, "relu", "in x f32[2]; y = relu(x); out y" },
    { "a domain that is none", 4, "com.example", "in x f32[2]; y = com.example:Relu(x); out y" },
    { "an operator without a name", 4, "1 operator has no meaning here: ", "in x f32[2]; y = (x); out y" },
    { "an operator that was removed", 3, "removed", "opset 20; in x f32[2]; y = Upsample(x,x); out y" },
    { "an operator that is not there yet", 4, "Gelu", "opset 10; in x f32[2]; y = Gelu(x); out y" },
    { "a name of ours", 4, "1 operator has no meaning here: qcc.nothing", "in x f32[2]; y = qcc:nothing(x); out y" },
    { "ours, with a wrong attribute", 3, "transpose axis 7 is outside [-1, 1)", "in x f32[2]; y = qcc:transpose(x) perm=is:7; out y" },
    { "what only an importer makes", 3, "is no call", "in x f32[2]; y = qcc:input(x); z = qcc:param(); out y; out z" },
    { "a call of a function that is not there", 4, "1 operator has no meaning here: local.f", "opset 20; opset local 1; in x f32[2]; y = local:f(x); out y" },
};
/* clang-format on */

/* ---- names in generated text ---- */

/* The words of a model stand in quotes, escaped, wherever a form writes them. */
static qcc_status gather(void *user, const void *bytes, size_t n)
{
    put(user, bytes, n);
    return QCC_OK;
}

static void generated(Corpus *c)
{
    static const char *const markers[] = { "\"; QCCMARK",       "</script><script>QCCMARK",
                                           "\\\"] QCCMARK [\"", "*/ QCCMARK /*",
                                           "} QCCMARK {",       "%QCCMARK: f32[] = " };
    static const char *const raw[] = { "\n\"; QCCMARK", NULL,          "\"\\\"] QCCMARK",
                                       "\n*/ QCCMARK",  "\n} QCCMARK", "\n%QCCMARK: f32[] = " };
    static const char *const kinds[] = { "ir", "json", "dot", "html" };
    for (size_t i = 0; i < COUNT(markers); i++) {
        for (int where = 0; where < PLACES; where++) {
            Bytes model = named((Where)where, markers[i], strlen(markers[i]));
            qcc_context *cx = corpus_open(c);
            const qcc_source source = qcc_bytes(model.p, model.n);
            qcc_model *m = NULL;
            corpus_judge(c, places[where], qcc_read(cx, &source, NULL, &m) == QCC_OK, "is not read");
            for (size_t k = 0; k < COUNT(kinds) && m; k++) {
                Bytes text = { 0 };
                const qcc_status status = qcc_emit(m, kinds[k], NULL, &(qcc_sink){ .write = gather, .user = &text });
                put(&text, "", 1);
                corpus_judge(c, kinds[k], status == QCC_OK || status == QCC_USAGE, "a form is refused");
                corpus_judge(c, kinds[k], !raw[i] || !strstr((const char *)text.p, raw[i]),
                             "a name stands outside its quotes");
                corpus_judge(c, kinds[k], strcmp(kinds[k], "html") != 0 || !strstr((const char *)text.p, "<script>QCC"),
                             "a name is markup");
                free(text.p);
            }
            qcc_model_free(m);
            corpus_judge(c, places[where], corpus_close(c, cx), "memory is left");
            c->cases[40]++;
            free(model.p);
        }
    }
}

void string_classes(Corpus *c)
{
    if (c->large)
        return;
    if (corpus_class(c, 11))
        nul(c);
    if (corpus_class(c, 12))
        utf8(c);
    if (corpus_class(c, 13))
        meaningful(c);
    if (corpus_class(c, 14))
        corpus_sketches(c, duplicates, COUNT(duplicates));
    if (corpus_class(c, 15))
        corpus_sketches(c, unknown, COUNT(unknown));
    if (corpus_class(c, 40))
        generated(c);
}
