#include "work/shapes.h"

#include <stdbool.h>
#include <stdlib.h>

/* A model under construction: parts of the graph in the order they came, and of the model around it. */
typedef struct Draft {
    Bytes graph, rest;
} Draft;

enum { FLOAT = 1, LONGEST = 200 };

static Bytes named_type(const char *name, const char *dim)
{
    Bytes d = { 0 }, shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    if (dim)
        put_text(&d, 2, dim);
    else
        put_int(&d, 1, 2);
    put_message(&shape, 1, d);
    put_int(&tensor, 1, FLOAT);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    return info;
}

static void input(Draft *d, const char *name)
{
    put_message(&d->graph, 11, named_type(name, NULL));
}

static void output(Draft *d, const char *name)
{
    put_message(&d->graph, 12, named_type(name, NULL));
}

static Bytes weight(const char *name)
{
    Bytes t = { 0 };
    put_int(&t, 1, 2);
    put_int(&t, 2, FLOAT);
    put_text(&t, 8, name);
    put_bytes(&t, 9, "\0\0\200?\0\0\0@", 8);
    return t;
}

static Bytes weight_of(int n)
{
    Bytes t = { 0 }, values = { 0 };
    put_int(&t, 1, (uint64_t)n);
    put_int(&t, 2, FLOAT);
    put_text(&t, 8, "w");
    for (int i = 0; i < n; i++)
        put(&values, "\0\0\200?", 4);
    put_message(&t, 9, values);
    return t;
}

static Bytes call(const char *op, const char *a, const char *b, const char *out)
{
    Bytes n = { 0 };
    if (a)
        put_text(&n, 1, a);
    if (b)
        put_text(&n, 1, b);
    put_text(&n, 2, out);
    put_text(&n, 3, out);
    put_text(&n, 4, op);
    return n;
}

static void node(Draft *d, const char *op, const char *a, const char *b, const char *out)
{
    put_message(&d->graph, 1, call(op, a, b, out));
}

static void attribute(Bytes *n, const char *name, int kind, uint32_t field, Bytes message, uint64_t number)
{
    Bytes a = { 0 };
    put_text(&a, 1, name);
    if (field == 3)
        put_int(&a, field, number);
    else
        put_message(&a, field, message);
    put_int(&a, 20, (uint64_t)kind);
    put_message(n, 5, a);
}

static const char *nth(char room[LONGEST], const char *stem, int i)
{
    snprintf(room, LONGEST, "%s%d", stem, i);
    return room;
}

static void opset(Draft *d, const char *domain, int version)
{
    Bytes set = { 0 };
    if (domain)
        put_text(&set, 1, domain);
    put_int(&set, 2, (uint64_t)version);
    put_message(&d->rest, 8, set);
}

static Bytes finish(Draft *d)
{
    Bytes model = { 0 };
    opset(d, NULL, 20);
    put_int(&model, 1, 10);
    put_text(&d->graph, 2, "g");
    put_message(&model, 7, d->graph);
    put(&model, d->rest.p, d->rest.n);
    free(d->rest.p);
    return model;
}

/* ---- shapes ---- */

static void chain_of(Draft *d, const char *stem, int n)
{
    char from[LONGEST], to[LONGEST];
    input(d, "x");
    for (int i = 0; i < n; i++)
        node(d, i % 2 ? "Tanh" : "Neg", i ? nth(from, stem, i - 1) : "x", NULL, i + 1 < n ? nth(to, stem, i) : "y");
    output(d, "y");
}

static Bytes chain(int n)
{
    Draft d = { 0 };
    chain_of(&d, "h", n);
    return finish(&d);
}

/* Names that are equal but for their end. */
static Bytes prefix(int n)
{
    Draft d = { 0 };
    chain_of(&d, "/model/transformer/encoder/layers/block/attention/self/query/MatMul_output_", n);
    return finish(&d);
}

/* One value with many uses, many nodes that nobody reads. */
static Bytes beside(int n)
{
    Draft d = { 0 };
    char to[LONGEST];
    input(&d, "x");
    for (int i = 0; i < n; i++)
        node(&d, "Tanh", "x", NULL, nth(to, "h", i));
    node(&d, "Neg", "x", NULL, "y");
    output(&d, "y");
    return finish(&d);
}

static Bytes outputs(int n)
{
    Draft d = { 0 };
    char to[LONGEST];
    input(&d, "x");
    node(&d, "Neg", "x", NULL, "y");
    output(&d, "y");
    for (int i = 0; i < n; i++) {
        node(&d, "Tanh", "x", NULL, nth(to, "y", i));
        output(&d, to);
    }
    return finish(&d);
}

static Bytes inputs(int n)
{
    Draft d = { 0 };
    char from[LONGEST], to[LONGEST];
    for (int i = 0; i < n; i++) {
        input(&d, nth(from, "x", i));
        node(&d, "Tanh", from, NULL, i ? nth(to, "y", i) : "y");
        output(&d, i ? to : "y");
    }
    return finish(&d);
}

/* Inputs that are outputs, and dimensions each with a name. */
static Bytes passed(int n)
{
    Draft d = { 0 };
    char name[LONGEST];
    input(&d, "x");
    node(&d, "Tanh", "x", NULL, "y");
    output(&d, "y");
    for (int i = 0; i < n; i++) {
        input(&d, nth(name, "p", i));
        output(&d, name);
    }
    return finish(&d);
}

static Bytes dimensions(int n)
{
    Draft d = { 0 };
    char name[LONGEST], dim[LONGEST];
    input(&d, "x");
    node(&d, "Tanh", "x", NULL, "y");
    output(&d, "y");
    for (int i = 0; i < n; i++)
        put_message(&d.graph, 11, named_type(nth(name, "p", i), nth(dim, "d", i)));
    return finish(&d);
}

static Bytes weights(int n)
{
    Draft d = { 0 };
    char w[LONGEST], from[LONGEST], to[LONGEST];
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        put_message(&d.graph, 5, weight(nth(w, "w", i)));
        node(&d, i % 2 ? "Add" : "Mul", i ? nth(from, "h", i - 1) : "x", w, i + 1 < n ? nth(to, "h", i) : "y");
    }
    output(&d, "y");
    return finish(&d);
}

static void note(Bytes *message, uint32_t field, const char *key, const char *value)
{
    Bytes pair = { 0 };
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_message(message, field, pair);
}

/* What PyTorch's exporter says of n parameters, and of the call that reads one of them. */
static void torch_signature(Draft *d, int n)
{
    enum { LINE = 64, NOTES_OF_GRAPH = 16 };
    char *text = calloc((size_t)n + 1, LINE);
    for (int i = 0, at = 0; text && i < n; i++)
        at += snprintf(text + at, LINE, "p_w%d: PARAMETER target='m%d.w'\n", i, i);
    note(&d->graph, NOTES_OF_GRAPH, "pkg.torch.export.ExportedProgram.graph_signature", text ? text : "");
    free(text);
}

static void torch_call(Draft *d, int i, int of, const char *w, const char *from, const char *to)
{
    enum { NOTES_OF_NODE = 9 };
    char text[LONGEST];
    Bytes mul = call("Mul", from, w, to);
    snprintf(text, sizeof text, "%%c%d : [] = call_function[target=torch.ops.aten.mul.Tensor](args = (%%x, %%p_w%d))",
             i, of);
    note(&mul, NOTES_OF_NODE, "pkg.torch.onnx.fx_node", text);
    put_message(&d->graph, 1, mul);
}

/* Equal parameters that the exporter merged. */
static Bytes merged(int n)
{
    Draft d = { 0 };
    char from[LONGEST], to[LONGEST];
    input(&d, "x");
    put_message(&d.graph, 5, weight("m0.w"));
    for (int i = 0; i < n; i++)
        torch_call(&d, i, i, "m0.w", i ? nth(from, "h", i - 1) : "x", i + 1 < n ? nth(to, "h", i) : "y");
    output(&d, "y");
    torch_signature(&d, n);
    return finish(&d);
}

/* Copies of one parameter, and as many that the file does not hold. */
static Bytes copies(int n)
{
    Draft d = { 0 };
    char w[LONGEST], from[LONGEST], to[LONGEST];
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        put_message(&d.graph, 5, weight(nth(w, "val_", i)));
        torch_call(&d, i, 0, w, i ? nth(from, "h", i - 1) : "x", i + 1 < n ? nth(to, "h", i) : "y");
    }
    output(&d, "y");
    torch_signature(&d, n);
    return finish(&d);
}

/* Initializers that nobody reads. */
static Bytes unread(int n)
{
    Draft d = { 0 };
    char w[LONGEST];
    for (int i = 0; i < n; i++)
        put_message(&d.graph, 5, weight(nth(w, "w", i)));
    chain_of(&d, "h", 2);
    return finish(&d);
}

static Bytes constants(int n)
{
    enum { A_TENSOR = 4 };
    Draft d = { 0 };
    char w[LONGEST], from[LONGEST], to[LONGEST];
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        Bytes c = call("Constant", NULL, NULL, nth(w, "c", i));
        attribute(&c, "value", A_TENSOR, 5, weight(w), 0);
        put_message(&d.graph, 1, c);
        node(&d, "Add", i ? nth(from, "h", i - 1) : "x", w, i + 1 < n ? nth(to, "h", i) : "y");
    }
    output(&d, "y");
    return finish(&d);
}

static Bytes operands(int n)
{
    Draft d = { 0 };
    Bytes sum = { 0 };
    char to[LONGEST];
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        node(&d, "Tanh", "x", NULL, nth(to, "h", i));
        put_text(&sum, 1, to);
    }
    put_text(&sum, 2, "y");
    put_text(&sum, 4, "Sum");
    put_message(&d.graph, 1, sum);
    output(&d, "y");
    return finish(&d);
}

/* One value, again and again an operand of one node. */
static Bytes uses(int n)
{
    enum { A_INT = 2 };
    Draft d = { 0 };
    Bytes concat = { 0 };
    input(&d, "x");
    for (int i = 0; i < n; i++)
        put_text(&concat, 1, "x");
    put_text(&concat, 2, "all");
    put_text(&concat, 4, "Concat");
    attribute(&concat, "axis", A_INT, 3, (Bytes){ 0 }, 0);
    put_message(&d.graph, 1, concat);
    node(&d, "Tanh", "all", NULL, "y");
    put_message(&d.graph, 12, named_type("y", "many"));
    return finish(&d);
}

static Bytes branch(const char *op, const char *from, const char *to)
{
    Bytes g = { 0 };
    put_message(&g, 1, call(op, from, NULL, to));
    put_text(&g, 2, to);
    put_message(&g, 12, named_type(to, NULL));
    return g;
}

static void condition(Draft *d)
{
    Bytes t = { 0 };
    put_int(&t, 2, 9);
    put_text(&t, 8, "which");
    put_bytes(&t, 9, "\1", 1);
    put_message(&d->graph, 5, t);
}

static Bytes regions(int n)
{
    enum { A_GRAPH = 5 };
    Draft d = { 0 };
    char from[LONGEST] = "x", to[LONGEST], a[LONGEST], b[LONGEST];
    condition(&d);
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        Bytes node_if = call("If", "which", NULL, i + 1 < n ? nth(to, "h", i) : "y");
        attribute(&node_if, "then_branch", A_GRAPH, 6, branch("Neg", from, nth(a, "a", i)), 0);
        attribute(&node_if, "else_branch", A_GRAPH, 6, branch("Tanh", from, nth(b, "b", i)), 0);
        put_message(&d.graph, 1, node_if);
        memcpy(from, to, sizeof to);
    }
    output(&d, "y");
    return finish(&d);
}

/* A branch that reads many values from outside. */
static Bytes captures(int n)
{
    enum { A_GRAPH = 5 };
    Draft d = { 0 };
    Bytes then = { 0 }, sum = { 0 }, node_if = call("If", "which", NULL, "y");
    char to[LONGEST];
    condition(&d);
    input(&d, "x");
    for (int i = 0; i < n; i++) {
        node(&d, "Tanh", "x", NULL, nth(to, "h", i));
        put_text(&sum, 1, to);
    }
    put_text(&sum, 2, "a");
    put_text(&sum, 4, "Sum");
    put_message(&then, 1, sum);
    put_text(&then, 2, "then");
    put_message(&then, 12, named_type("a", NULL));
    attribute(&node_if, "then_branch", A_GRAPH, 6, then, 0);
    attribute(&node_if, "else_branch", A_GRAPH, 6, branch("Tanh", "x", "b"), 0);
    put_message(&d.graph, 1, node_if);
    output(&d, "y");
    return finish(&d);
}

static Bytes functions(int n)
{
    Draft d = { 0 };
    char name[LONGEST], from[LONGEST], to[LONGEST];
    input(&d, "x");
    opset(&d, "local", 1);
    for (int i = 0; i < n; i++) {
        Bytes f = { 0 }, set = { 0 },
              c = call(nth(name, "f", i), i ? nth(from, "h", i - 1) : "x", NULL, i + 1 < n ? nth(to, "h", i) : "y");
        put_text(&c, 7, "local");
        put_message(&d.graph, 1, c);
        put_text(&f, 1, name);
        put_text(&f, 4, "a");
        put_text(&f, 5, "b");
        put_message(&f, 7, call("Tanh", "a", NULL, "b"));
        put_int(&set, 2, 20);
        put_message(&f, 9, set);
        put_text(&f, 10, "local");
        put_message(&d.rest, 25, f);
    }
    output(&d, "y");
    return finish(&d);
}

static Bytes infos(int n)
{
    Draft d = { 0 };
    char name[LONGEST];
    chain_of(&d, "h", n);
    for (int i = 0; i + 1 < n; i++)
        put_message(&d.graph, 13, named_type(nth(name, "h", i), NULL));
    return finish(&d);
}

static Bytes properties(int n)
{
    Draft d = { 0 };
    char key[LONGEST];
    chain_of(&d, "h", 2);
    for (int i = 0; i < n; i++) {
        Bytes entry = { 0 };
        put_text(&entry, 1, nth(key, "key", i));
        put_text(&entry, 2, "value");
        put_message(&d.rest, 14, entry);
    }
    return finish(&d);
}

static Bytes opsets(int n)
{
    Draft d = { 0 };
    char domain[LONGEST];
    chain_of(&d, "h", 2);
    for (int i = 0; i < n; i++)
        opset(&d, nth(domain, "com.example.", i), 1);
    return finish(&d);
}

/* Operators that nobody knows, and one with many attributes. */
static Bytes unknown(int n)
{
    Draft d = { 0 };
    char op[LONGEST], to[LONGEST];
    chain_of(&d, "h", 2);
    opset(&d, "com.example", 1);
    for (int i = 0; i < n; i++) {
        Bytes c = call(nth(op, "Op", i), "x", NULL, nth(to, "u", i));
        put_text(&c, 7, "com.example");
        put_message(&d.graph, 1, c);
    }
    return finish(&d);
}

static Bytes attributes(int n)
{
    enum { A_INT = 2 };
    Draft d = { 0 };
    char name[LONGEST];
    Bytes c = call("Op", "x", NULL, "u");
    chain_of(&d, "h", 2);
    opset(&d, "com.example", 1);
    put_text(&c, 7, "com.example");
    for (int i = 0; i < n; i++)
        attribute(&c, nth(name, "a", i), A_INT, 3, (Bytes){ 0 }, (uint64_t)i);
    put_message(&d.graph, 1, c);
    return finish(&d);
}

static Bytes square(const char *name, bool is_type)
{
    Bytes d = { 0 }, shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    if (!is_type) {
        put_int(&info, 1, 2);
        put_int(&info, 1, 2);
        put_int(&info, 2, FLOAT);
        put_text(&info, 8, name);
        put_bytes(&info, 9, "\0\0\200?\0\0\0@\0\0\0@\0\0\200?", 16);
        return info;
    }
    put_int(&d, 1, 2);
    put_bytes(&shape, 1, d.p, d.n);
    put_message(&shape, 1, d);
    put_int(&tensor, 1, FLOAT);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    return info;
}

/* Products with weights, which mixed precision computes narrow. */
static Bytes layers(int n)
{
    Draft d = { 0 };
    char w[LONGEST], from[LONGEST], to[LONGEST], product[LONGEST];
    put_message(&d.graph, 11, square("x", true));
    for (int i = 0; i < n; i++) {
        put_message(&d.graph, 5, square(nth(w, "w", i), false));
        node(&d, "MatMul", i ? nth(from, "h", i - 1) : "x", w, nth(product, "m", i));
        node(&d, "Tanh", product, NULL, i + 1 < n ? nth(to, "h", i) : "y");
    }
    put_message(&d.graph, 12, square("y", true));
    return finish(&d);
}

/* A network on samples of n numbers, in batches of two. */
static Bytes wide(int n)
{
    Draft d = { 0 };
    const char *const names[] = { "x", "y" };
    for (uint32_t i = 0; i < 2; i++) {
        Bytes rows = { 0 }, columns = { 0 }, shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
        put_int(&rows, 1, 2);
        put_int(&columns, 1, (uint64_t)n);
        put_message(&shape, 1, rows);
        put_message(&shape, 1, columns);
        put_int(&tensor, 1, FLOAT);
        put_message(&tensor, 2, shape);
        put_message(&type, 1, tensor);
        put_text(&info, 1, names[i]);
        put_message(&info, 2, type);
        put_message(&d.graph, 11 + i, info);
    }
    put_message(&d.graph, 5, weight_of(n));
    node(&d, "Mul", "x", "w", "h");
    node(&d, "Tanh", "h", NULL, "y");
    return finish(&d);
}

/* The same small model however many there are: what is many is beside it. */
static Bytes small(int n)
{
    (void)n;
    return weights(3);
}

/* clang-format off */
const Shape shapes[] = {
    { "chain",      chain,      250 },
    { "prefix",     prefix,     250 },
    { "beside",     beside,     300 },
    { "outputs",    outputs,    300 },
    { "inputs",     inputs,     300 },
    { "passed",     passed,     500 },
    { "dimensions", dimensions, 500 },
    { "weights",    weights,    250 },
    { "merged",     merged,     200 },
    { "copies",     copies,     200 },
    { "unread",     unread,     500 },
    { "constants",  constants,  250 },
    { "operands",   operands,   300 },
    { "uses",       uses,       500 },
    { "regions",    regions,    100 },
    { "captures",   captures,   250 },
    { "functions",  functions,  250 },
    { "infos",      infos,      250 },
    { "properties", properties, 1000 },
    { "opsets",     opsets,     1000 },
    { "unknown",    unknown,    300 },
    { "attributes", attributes, 200 },
    { "layers",     layers,     150 },
    { "wide",       wide,       500 },
    { "small",      small,      500 },
};
/* clang-format on */
const size_t n_shapes = COUNT(shapes);
