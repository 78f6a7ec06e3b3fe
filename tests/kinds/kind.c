#include "kinds/kind.h"

static const struct {
    const char *name;
    int bits;
} elements[ELEMENTS + 1] = {
    { "undefined", 0 },  { "f32", 32 },   { "u8", 8 },         { "i8", 8 },           { "u16", 16 },   { "i16", 16 },
    { "i32", 32 },       { "i64", 64 },   { "string", 0 },     { "bool", 8 },         { "f16", 16 },   { "f64", 64 },
    { "u32", 32 },       { "u64", 64 },   { "complex64", 64 }, { "complex128", 128 }, { "bf16", 16 },  { "f8e4m3", 8 },
    { "f8e4m3fnuz", 8 }, { "f8e5m2", 8 }, { "f8e5m2fnuz", 8 }, { "u4", 4 },           { "i4", 4 },     { "f4e2m1", 4 },
    { "f8e8m0", 8 },     { "u2", 2 },     { "i2", 2 },         { "f6e2m3", 6 },       { "f6e3m2", 6 },
};

const char *element_name(int element)
{
    return elements[element].name;
}

const char *holder_name(Holder h)
{
    static const char *const names[] = {
#define NAME(id, text) text,
        HOLDERS(NAME)
#undef NAME
    };
    return names[h];
}

const char *role_name(Role r)
{
    static const char *const names[] = {
#define NAME(id, text, what) text,
        ROLES(NAME)
#undef NAME
    };
    return names[r];
}

enum { FLOAT = 1, INT64 = 7, STRINGS = 8, ROWS = 2, COLUMNS = 3 };

static bool is_stored(Role r)
{
    return r == ROLE_WEIGHT || r == ROLE_HELD || r == ROLE_DEFAULT || r == ROLE_UNREAD || r == ROLE_CONSTANT ||
           r == ROLE_BATCHED;
}

bool kind_exists(Kind k)
{
    const bool plain = k.holder == HOLD_TENSOR || k.holder == HOLD_SCALAR;
    if (is_stored(k.role))
        return plain && !(k.role == ROLE_BATCHED && k.holder == HOLD_SCALAR);
    if (k.role == ROLE_CAST)
        return plain;
    return k.role != ROLE_MADE || k.holder == HOLD_SEQ || k.holder == HOLD_OPTIONAL || k.holder == HOLD_OPTIONAL_SEQ;
}

/* ---- types ---- */

static Bytes dim(int64_t n)
{
    Bytes d = { 0 };
    if (n < 0)
        put_text(&d, 2, "n");
    else
        put_int(&d, 1, (uint64_t)n);
    return d;
}

static Bytes tensor_type(int element, int rank, int64_t rows, uint32_t field)
{
    Bytes type = { 0 }, tensor = { 0 }, shape = { 0 };
    put_int(&tensor, 1, (uint64_t)element);
    if (rank == 2) {
        put_message(&shape, 1, dim(rows));
        put_message(&shape, 1, dim(COLUMNS));
    }
    if (rank >= 0)
        put_message(&tensor, 2, shape);
    put_message(&type, field, tensor);
    return type;
}

static Bytes around(uint32_t field, Bytes element)
{
    Bytes type = { 0 }, holder = { 0 };
    put_message(&holder, 1, element);
    put_message(&type, field, holder);
    return type;
}

static Bytes map_type(int element)
{
    Bytes type = { 0 }, map = { 0 };
    put_int(&map, 1, INT64);
    put_message(&map, 2, tensor_type(element, 2, ROWS, 1));
    put_message(&type, 5, map);
    return type;
}

static Bytes opaque_type(void)
{
    Bytes type = { 0 }, opaque = { 0 };
    put_text(&opaque, 1, "test");
    put_text(&opaque, 2, "thing");
    put_message(&type, 7, opaque);
    return type;
}

static Bytes type_of(Holder h, int element)
{
    enum { IN_TENSOR = 1, IN_SEQ = 4, IN_SPARSE = 8, IN_OPTIONAL = 9 };
    const Bytes plain = { 0 };
    switch (h) {
    case HOLD_TENSOR:
        return tensor_type(element, 2, ROWS, IN_TENSOR);
    case HOLD_SCALAR:
        return tensor_type(element, 0, 0, IN_TENSOR);
    case HOLD_UNRANKED:
        return tensor_type(element, -1, 0, IN_TENSOR);
    case HOLD_SYMBOLIC:
        return tensor_type(element, 2, -1, IN_TENSOR);
    case HOLD_SPARSE:
        return tensor_type(element, 2, ROWS, IN_SPARSE);
    case HOLD_SEQ:
        return around(IN_SEQ, tensor_type(element, 2, ROWS, IN_TENSOR));
    case HOLD_SEQ_SEQ:
        return around(IN_SEQ, around(IN_SEQ, tensor_type(element, 2, ROWS, IN_TENSOR)));
    case HOLD_OPTIONAL:
        return around(IN_OPTIONAL, tensor_type(element, 2, ROWS, IN_TENSOR));
    case HOLD_OPTIONAL_SEQ:
        return around(IN_OPTIONAL, around(IN_SEQ, tensor_type(element, 2, ROWS, IN_TENSOR)));
    case HOLD_MAP:
        return map_type(element);
    case HOLD_SEQ_MAP:
        return around(IN_SEQ, map_type(element));
    case HOLD_OPAQUE:
        return opaque_type();
    default:
        return plain;
    }
}

static Bytes value_info(const char *name, Bytes type)
{
    Bytes v = { 0 };
    put_text(&v, 1, name);
    put_message(&v, 2, type);
    return v;
}

/* ---- values ---- */

static Bytes tensor(const char *name, int element, bool scalar)
{
    static const char *const words[] = { "a", "bee", "", "sea", "d", "e" };
    static const unsigned char zeros[ROWS * COLUMNS * 16];
    Bytes t = { 0 };
    const int n = scalar ? 1 : ROWS * COLUMNS;
    if (!scalar) {
        put_int(&t, 1, ROWS);
        put_int(&t, 1, COLUMNS);
    }
    put_int(&t, 2, (uint64_t)element);
    for (int i = 0; i < n && element == STRINGS; i++)
        put_text(&t, 6, words[i]);
    if (name)
        put_text(&t, 8, name);
    if (element != STRINGS)
        put_bytes(&t, 9, zeros, ((size_t)n * (size_t)elements[element].bits + 7) / 8);
    return t;
}

Bytes kind_value(Kind k)
{
    Bytes value = { 0 }, inner = { 0 };
    switch (k.role == ROLE_MADE ? HOLD_TENSOR : k.holder) {
    case HOLD_SEQ:
    case HOLD_SEQ_SEQ:
    case HOLD_SEQ_MAP:
        put_text(&value, 1, "odd_v");
        if (k.holder != HOLD_SEQ)
            return value; /* an empty one is of any type */
        put_int(&value, 2, 1);
        put_message(&value, 3, tensor(NULL, k.element, false));
        return value;
    case HOLD_OPTIONAL:
        put_int(&value, 2, 1);
        put_message(&value, 3, tensor(NULL, k.element, false));
        return value;
    case HOLD_OPTIONAL_SEQ:
        put_int(&inner, 2, 1);
        put_message(&inner, 3, tensor(NULL, k.element, false));
        put_int(&value, 2, 3);
        put_message(&value, 5, inner);
        return value;
    case HOLD_MAP:
    case HOLD_OPAQUE:
    case HOLD_SPARSE:
        return value;
    default:
        return tensor("odd_v", k.element, k.holder == HOLD_SCALAR);
    }
}

/* ---- models ---- */

static Bytes node(const char *op, const char *a, const char *b, const char *out)
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

static Bytes branch(Kind k, const char *result)
{
    Bytes g = { 0 };
    put_message(&g, 1, node("Identity", "odd_v", NULL, result));
    put_text(&g, 2, result);
    put_message(&g, 12, value_info(result, type_of(k.holder, k.element)));
    return g;
}

static void makes(Bytes *g, Kind k)
{
    enum { A_INT = 2, A_TENSOR = 4, A_GRAPH = 5 };
    Bytes n;
    switch (k.role) {
    case ROLE_CONSTANT:
        n = node("Constant", NULL, NULL, "odd_o");
        attribute(&n, "value", A_TENSOR, 5, tensor(NULL, k.element, k.holder == HOLD_SCALAR), 0);
        break;
    case ROLE_CAST:
        n = node("Cast", k.holder == HOLD_SCALAR ? "s" : "a", NULL, "odd_o");
        attribute(&n, "to", A_INT, 3, (Bytes){ 0 }, (uint64_t)k.element);
        break;
    case ROLE_MADE:
        if (k.holder == HOLD_OPTIONAL_SEQ)
            put_message(g, 1, node("SequenceConstruct", "odd_v", NULL, "odd_list"));
        n = k.holder == HOLD_SEQ ? node("SequenceConstruct", "odd_v", NULL, "odd_o")
                                 : node("Optional", k.holder == HOLD_OPTIONAL ? "odd_v" : "odd_list", NULL, "odd_o");
        break;
    case ROLE_BATCHED:
        n = node("Concat", "odd_x", "odd_v", "odd_o");
        attribute(&n, "axis", A_INT, 3, (Bytes){ 0 }, 1);
        break;
    case ROLE_BRANCH:
        n = node("If", "which", NULL, "odd_o");
        attribute(&n, "then_branch", A_GRAPH, 6, branch(k, "odd_1"), 0);
        attribute(&n, "else_branch", A_GRAPH, 6, branch(k, "odd_2"), 0);
        break;
    case ROLE_PASSED:
    case ROLE_HELD:
    case ROLE_IDLE:
    case ROLE_UNREAD:
    case ROLE_ONLY:
        return;
    default:
        n = node("Identity", "odd_v", NULL, "odd_o");
        break;
    }
    put_message(g, 1, n);
}

static void begins(Bytes *g, Kind k)
{
    const Holder in = k.role == ROLE_MADE ? HOLD_TENSOR : k.holder;
    const bool stored = is_stored(k.role);
    if (stored && k.role != ROLE_CONSTANT)
        put_message(g, 5, tensor("odd_v", k.element, k.holder == HOLD_SCALAR));
    if ((!stored && k.role != ROLE_CAST) || k.role == ROLE_DEFAULT)
        put_message(g, 11, value_info("odd_v", type_of(in, k.element)));
    if (k.role == ROLE_BATCHED)
        put_message(g, 11, value_info("odd_x", type_of(HOLD_TENSOR, k.element)));
    if (k.role == ROLE_BRANCH)
        put_message(g, 5, tensor("which", 9, true));
    if (k.role == ROLE_CAST && k.holder == HOLD_SCALAR)
        put_message(g, 5, tensor("s", FLOAT, true));
}

static void ends(Bytes *g, Kind k)
{
    if (k.role == ROLE_IDLE || k.role == ROLE_UNREAD)
        return;
    const bool itself = k.role == ROLE_PASSED || k.role == ROLE_HELD || k.role == ROLE_ONLY;
    const Bytes type = k.role == ROLE_BATCHED ? tensor_type(k.element, -1, 0, 1) : type_of(k.holder, k.element);
    put_message(g, 12, value_info(itself ? "odd_v" : "odd_o", type));
}

Bytes kind_model(Kind k)
{
    Bytes model = { 0 }, g = { 0 }, set = { 0 };
    makes(&g, k);
    if (k.role != ROLE_ONLY)
        put_message(&g, 1, node("MatMul", "a", "w", "h"));
    put_text(&g, 2, "g");
    begins(&g, k);
    if (k.role != ROLE_ONLY) {
        Bytes w = { 0 };
        static const float values[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
        put_int(&w, 1, COLUMNS);
        put_int(&w, 1, COLUMNS);
        put_int(&w, 2, FLOAT);
        put_text(&w, 8, "w");
        put_bytes(&w, 9, values, sizeof values);
        put_message(&g, 5, w);
        put_message(&g, 11, value_info("a", tensor_type(FLOAT, 2, ROWS, 1)));
        put_message(&g, 12, value_info("h", tensor_type(FLOAT, 2, ROWS, 1)));
    }
    ends(&g, k);
    put_int(&set, 2, 25);
    put_int(&model, 1, 13);
    put_message(&model, 8, set);
    put_message(&model, 7, g);
    return model;
}
