#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codegen/source/c_parts.h"

enum { COLUMNS = 112 }; /* of a table's line */

static void indent(CSource *s)
{
    for (int i = 0; i < s->depth; i++)
        text_add(&s->code, "    ");
}

static void __attribute__((format(printf, 2, 0))) add_line(CSource *s, const char *format, va_list args)
{
    indent(s);
    text_linef(&s->code, "%s", arena_vprintf(s->arena, format, args));
}

void c_line(CSource *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_line(s, format, args);
    va_end(args);
}

void c_open(CSource *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_line(s, format, args);
    va_end(args);
    s->depth++;
}

void c_loop(CSource *s, const char *index, int64_t n)
{
    if (n != 1)
        c_open(s, "for (int %s = 0; %s < %" PRId64 "; %s++) {", index, index, n, index);
}

void c_close_to(CSource *s, int depth)
{
    while (s->depth > depth) {
        s->depth--;
        c_line(s, "}");
    }
}

const char *c_index(CSource *s, int n, const CAxis *axes)
{
    const char *text = NULL;
    bool sum = false;
    for (int i = 0; i < n; i++) {
        if (axes[i].extent == 1)
            continue;
        if (text)
            text = arena_printf(s->arena, sum ? "(%s) * %" PRId64 " + %s" : "%s * %" PRId64 " + %s", text,
                                axes[i].extent, axes[i].index);
        else
            text = axes[i].index;
        sum = strpbrk(text, "+-") != NULL;
    }
    return text ? text : "0";
}

const char *c_smallest(int64_t n, const int64_t *v)
{
    static const struct {
        const char *name;
        int64_t least, most;
    } types[] = { { "int8_t", INT8_MIN, INT8_MAX },     { "uint8_t", 0, UINT8_MAX },
                  { "int16_t", INT16_MIN, INT16_MAX },  { "uint16_t", 0, UINT16_MAX },
                  { "int32_t", -INT32_MAX, INT32_MAX }, { "uint32_t", 0, UINT32_MAX } };
    int64_t least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    for (size_t i = 0; i < COUNT(types); i++)
        if (least >= types[i].least && most <= types[i].most)
            return types[i].name;
    return "int64_t";
}

static int64_t bytes_of(const char *type)
{
    return strstr(type, "64") ? 8 : strstr(type, "32") ? 4 : strstr(type, "16") ? 2 : 1;
}

void c_table(CSource *s, const char *name, const char *type, int64_t n, const int64_t *v)
{
    size_t column = COLUMNS;
    s->table_bytes += n * bytes_of(type);
    text_printf(&s->code, "static const %s %s[%" PRId64 "] = {", type, name, n);
    for (int64_t i = 0; i < n; i++) {
        char number[32];
        const int length =
            snprintf(number, sizeof number, "%" PRId64 "%s,", v[i], v[i] > INT32_MAX || v[i] < -INT32_MAX ? "LL" : "");
        const bool fits = column + (size_t)length + 1 <= COLUMNS;
        text_add(&s->code, fits ? " " : "\n    ");
        text_add(&s->code, number);
        column = (fits ? column + 1 : 4) + (size_t)length;
    }
    text_add(&s->code, "\n};\n");
}

/* Tables of few numbers are not worth a call. */
enum { FEWEST_PACKED = 32 };

CWeights c_weights(CSource *s, const char *name, int64_t n, const int64_t *v)
{
    CWeights w = { .name = name, .packed = n >= FEWEST_PACKED };
    for (int64_t i = 0; i < n && w.packed; i++)
        w.packed = v[i] >= -8 && v[i] <= 7;
    if (!w.packed) {
        c_table(s, name, c_smallest(n, v), n, v);
        return w;
    }
    int64_t *pairs = NEWS(s->arena, int64_t, (size_t)(n + 1) / 2);
    for (int64_t i = 0; i < n; i++)
        pairs[i / 2] |= (v[i] & 15) << i % 2 * 4;
    c_table(s, name, "uint8_t", (n + 1) / 2, pairs);
    return w;
}

const char *c_weight(CSource *s, const CWeights *w, const char *index)
{
    return arena_printf(s->arena, w->packed ? "nibble(%s, %s)" : "%s[%s]", w->name, index);
}

const char *c_shape(CSource *s, const Type *t)
{
    Text text;
    text_open(&text, s->arena);
    for (int i = 0; i < t->rank; i++)
        if (i || t->dims[i] != 1 || t->rank == 1)
            text_printf(&text, "%s%" PRId64, text.n ? " x " : "", t->dims[i]);
    return text.n ? text_get(&text) : "1";
}

const char *c_comment(CSource *s, const char *name)
{
    enum { MOST = 80 };
    Text text;
    text_open(&text, s->arena);
    text_escape(&text, name, strlen(name), MOST);
    char *p = arena_printf(s->arena, "%s", text_get(&text));
    for (char *c = p; *c; c++)
        if ((c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*') || *c == '\\')
            *c = '|';
    return p;
}

void c_function(CSource *s, const char *name, const Node *n, int n_in, const Node *const *ins, const char *remark)
{
    static const char *const letters[] = { "x", "w" };
    const Type *y = n->type->kind == TYPE_TUPLE ? type_result(n->type, 0) : n->type;
    const char *label = n->label ? n->label : n->name ? n->name : "";
    label = arena_printf(s->arena, "%.*s", (int)strcspn(label, "#"), label); /* its number among those of one name */
    text_printf(&s->code, "\n/* %s%s%s */\n", c_comment(s, label), *label ? ": " : "", remark);
    text_printf(&s->code, "static void %s(", name);
    for (int i = 0; i < n_in; i++)
        text_printf(&s->code, "const %s *%s, ", c_type(c_kept(ins[i]->type)), letters[i]);
    text_printf(&s->code, "%s *y)\n{\n", c_type(c_kept(y)));
    s->depth = 1;
}

const char *c_centred(CSource *s, const char *x, int64_t zero)
{
    return zero > 0   ? arena_printf(s->arena, "(%s - %" PRId64 ")", x, zero)
           : zero < 0 ? arena_printf(s->arena, "(%s + %" PRId64 ")", x, -zero)
                      : x;
}

const char *c_code(CSource *s, const char *value, const CodeRange *range, DType dtype)
{
    const char *shifted = range->z > 0   ? arena_printf(s->arena, "%s + %d", value, (int)range->z)
                          : range->z < 0 ? arena_printf(s->arena, "%s - %d", value, (int)-range->z)
                                         : value;
    return arena_printf(s->arena, "(%s)clamp(%s, %d, %d)", c_type(dtype), shifted, (int)range->lo, (int)range->hi);
}

void c_store(CSource *s, const char *index, const char *value, const CodeRange *range, DType dtype)
{
    c_line(s, "y[%s] = %s;", index, c_code(s, value, range, dtype));
}

CFixed c_fixed(f32 v)
{
    int e = 0;
    const float m = frexpf(v, &e);
    return (CFixed){ (int64_t)ldexpf(m, 24), 24 - e };
}

bool c_is_factor(CFixed *f)
{
    if (!f->m)
        f->shift = 0;
    f->shift = f->shift > 62 ? 62 : f->shift;
    return f->m >= 0 && f->m <= 1 << 24 && f->shift >= 0;
}

const int64_t *c_integers(CSource *s, const Tensor *t)
{
    const int64_t n = tensor_elements(t);
    int64_t *v = NEWS(s->arena, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = tensor_get_i64(t, i);
    return v;
}

const f32 *c_floats(CSource *s, const Tensor *t)
{
    const int64_t n = tensor_elements(t);
    f32 *v = NEWS(s->arena, f32, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = (f32)tensor_get_f64(t, i);
    return v;
}

f32 c_float(CSource *s, const Node *n)
{
    return (f32)tensor_get_f64(c_constant(s, n), 0);
}

int64_t c_integer(CSource *s, const Node *n)
{
    return n ? tensor_get_i64(c_constant(s, n), 0) : 0;
}

Status c_refuse(const Node *n, const char *why, const char *way)
{
    Message *m = message_new(n->graph->ir->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "no C of it: %s", why);
    if (way)
        message_try(m, "%s", way);
    return message_send(m);
}
