/* Values in text: payloads and attributes. */
#include <inttypes.h>
#include <string.h>

#include "ir/store/init.h"
#include "ir/text/literal.h"
#include "ir/text/parser.h"

static Status not_a_value(Parser *p, const Type *type)
{
    return fail(p->ir->diag, parse_place(p, &p->token), "%s is not a value of %s", parse_shown(p, &p->token),
                dtype_name(type->dtype));
}

static bool at_number(const Parser *p)
{
    return p->token.kind == TOKEN_NUMBER || parse_at_word(p, "true") || parse_at_word(p, "false") ||
           parse_at_word(p, "inf") || parse_at_word(p, "nan");
}

/* Where a list of elements stands: brackets open, and how many elements each of them has seen. */
typedef struct ListState {
    int depth;
    int64_t filled;
} ListState;

static Status count_differs(Parser *p, const Token *at, const Type *type, int64_t got)
{
    return fail(p->ir->diag, parse_place(p, at), "%s has %" PRId64 " elements, not %" PRId64, type_text(p->arena, type),
                type_elements(type), got);
}

/* After an opening bracket: inner ones are allowed where a row of the shape starts. */
static bool row_starts(const Type *type, const ListState *s)
{
    int64_t row = 1;
    for (int i = s->depth; i < type->rank; i++)
        if (__builtin_mul_overflow(row, type->dims[i], &row))
            return false;
    return s->depth < type->rank && (row == 0 || s->filled % row == 0);
}

static Status list_elements(Parser *p, const Type *type, Tensor *t, const Token *start)
{
    ListState s = { 1, 0 };
    bool comma = true; /* an element may stand here */
    const int64_t n = type_elements(type);
    while (s.depth) {
        if (parse_at_sign(p, ']')) {
            s.depth--;
            comma = false;
        } else if (parse_at_sign(p, ',') && !comma) {
            comma = true;
        } else if (parse_at_sign(p, '[') && comma) {
            if (!row_starts(type, &s))
                return fail(p->ir->diag, parse_place(p, &p->token), "no row of %s starts here",
                            type_text(p->arena, type));
            s.depth++;
        } else if (at_number(p) && comma) {
            if (s.filled == n)
                return count_differs(p, start, type, n + 1);
            if (!literal_read_element(p->token.text, t, s.filled++))
                return not_a_value(p, type);
            comma = false;
        } else {
            return parse_wanted(p, comma ? "a number or ]" : ", or ]");
        }
        TRY(parse_next(p));
    }
    return s.filled == n ? OK : count_differs(p, start, type, s.filled);
}

static size_t bytes_left(const Parser *p)
{
    return (size_t)(p->lexer.text.p + p->lexer.text.n - p->token.at);
}

/* The element count is held against the text before memory is asked for. */
static Status list(Parser *p, const Type *type, Payload **payload)
{
    const Token start = p->token;
    const int64_t n = type_elements(type);
    if ((uint64_t)n > bytes_left(p))
        return fail(p->ir->diag, parse_place(p, &start), "%s has %" PRId64 " elements, the list has fewer",
                    type_text(p->arena, type), n);
    Tensor *t = tensor_new(p->arena, type);
    *payload = payload_of(p->arena, t);
    if (parse_at_sign(p, '[')) {
        TRY(parse_next(p));
        return list_elements(p, type, t, &start);
    }
    if (n != 1)
        return count_differs(p, &start, type, 1);
    if (!literal_read_element(p->token.text, t, 0))
        return not_a_value(p, type);
    return parse_next(p);
}

static unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c >= 'a' ? c - 'a' + 10 : c - 'A' + 10);
}

static Status hex(Parser *p, const Type *type, Payload **payload)
{
    const Str digits = p->token.text;
    size_t bytes;
    if (!type_bytes(type, &bytes) || digits.n / 2 != bytes)
        return fail(p->ir->diag, parse_place(p, &p->token), "%s takes %zu bytes, not %zu", type_text(p->arena, type),
                    type_bytes(type, &bytes) ? bytes : 0, digits.n / 2);
    Tensor *t = tensor_new(p->arena, type);
    unsigned char *out = t->data;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(hex_digit(digits.p[2 * i]) << 4 | hex_digit(digits.p[2 * i + 1]));
    *payload = payload_of(p->arena, t);
    return parse_next(p);
}

static Status unknown_blob(Parser *p, const Token *name)
{
    const size_t n = p->blobs ? p->blobs->n : 0;
    const char **names = NEWS(&p->scratch, const char *, n);
    for (size_t i = 0; i < n; i++)
        names[i] = p->blobs->list[i].name;
    const char *near = str_nearest(name->text.p, names, n);
    Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, name), "no blob is called \"%s\"%s",
                             name->text.p, n ? "" : ": there is no file of them beside the text");
    if (near)
        message_try(m, "@blob(\"%s\")", near);
    return message_send(m);
}

static Status blob(Parser *p, const Type *type, Payload **payload)
{
    bool fits = false;
    if (!str_is(p->token.text, "blob"))
        return parse_wanted(p, "@blob");
    TRY(parse_next(p));
    TRY(parse_sign(p, '('));
    const Token name = p->token;
    if (name.kind != TOKEN_STRING)
        return parse_wanted(p, "a string");
    if (type->dtype == STRING) {
        *payload = NEW(p->arena, Payload);
        **payload = (Payload){ .type = type,
                               .arena = p->arena,
                               .name = name.text.p }; /* what the strings are is not in the text */
    } else {
        *payload = p->blobs ? blobs_find(p->blobs, name.text, type, &fits) : NULL;
        if (!*payload)
            return unknown_blob(p, &name);
        if (!fits)
            return fail(p->ir->diag, parse_place(p, &name), "blob \"%s\" is %s, not %s", name.text.p,
                        type_text(p->arena, (*payload)->type), type_text(p->arena, type));
    }
    TRY(parse_next(p));
    return parse_sign(p, ')');
}

static Status init_options(Parser *p, Init *init)
{
    TRY(parse_next(p));
    while (!parse_at_sign(p, ')')) {
        const Token name = p->token;
        if (name.kind != TOKEN_WORD)
            return parse_wanted(p, "seed=N or scale=X");
        TRY(parse_next(p));
        TRY(parse_sign(p, '='));
        int64_t seed;
        if (str_is(name.text, "seed")) {
            TRY(parse_integer(p, &seed));
            init->seed = (uint64_t)seed;
        } else if (str_is(name.text, "scale")) {
            if (p->token.kind != TOKEN_NUMBER || !literal_read_f32(p->token.text, &init->scale))
                return parse_wanted(p, "a number");
            TRY(parse_next(p));
        } else {
            return fail(p->ir->diag, parse_place(p, &name), "%.*s is no option of an initial value: seed, scale",
                        STR_ARG(name.text));
        }
        if (!parse_at_sign(p, ')'))
            TRY(parse_sign(p, ','));
    }
    return parse_next(p);
}

static Status initial(Parser *p, const Type *type, Payload **payload)
{
    Init init = { .kind = INIT_COUNT, .scale = 1 };
    const char *words[INIT_COUNT];
    for (int k = 0; k < INIT_COUNT; k++) {
        words[k] = init_word((InitKind)k);
        if (parse_at_word(p, words[k]))
            init.kind = (InitKind)k;
    }
    if (init.kind == INIT_COUNT) {
        const char *word = arena_copy(&p->scratch, p->token.text.p, p->token.text.n);
        const char *near = str_nearest(word, words, INIT_COUNT);
        Message *m =
            message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, &p->token), "%s is no value", word);
        if (near)
            message_try(m, "%s", near);
        return message_send(m);
    }
    TRY(parse_next(p));
    if (init_draws(init.kind) && parse_at_sign(p, '('))
        TRY(init_options(p, &init));
    *payload = payload_init(p->arena, type, init);
    return OK;
}

Status parse_payload(Parser *p, const Type *type, Payload **payload)
{
    const bool is_blob = p->token.kind == TOKEN_NAME;
    if (type->kind != TYPE_TENSOR || type_elements(type) < 0)
        return fail(p->ir->diag, parse_place(p, &p->token), "%s has no values that can be written",
                    type_text(p->arena, type));
    if (type_elements(type) > p->ir->limits.elements)
        return parse_limit(p, &p->token, "elements", p->ir->limits.elements, "elements");
    if (type->dtype == STRING && !is_blob)
        return fail(p->ir->diag, parse_place(p, &p->token), "strings are written as @blob(\"name\")");
    if (is_blob)
        return blob(p, type, payload);
    if (p->token.kind == TOKEN_HEX)
        return hex(p, type, payload);
    if (parse_at_sign(p, '[') || at_number(p))
        return list(p, type, payload);
    return p->token.kind == TOKEN_WORD ? initial(p, type, payload) : parse_wanted(p, "a value");
}

/* ---- attributes ---- */

static Status choice(Parser *p, const AttrSpec *s, int *out)
{
    size_t n = 0;
    if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_STRING)
        return parse_wanted(p, "a word");
    for (; s->choices[n]; n++) {
        if (str_is(p->token.text, s->choices[n])) {
            *out = (int)n;
            return parse_next(p);
        }
    }
    const char *word = arena_copy(&p->scratch, p->token.text.p, p->token.text.n);
    const char *near = str_nearest(word, s->choices, n);
    Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, &p->token), "%s is no choice of %s",
                             word, s->name);
    message_try(m, "%s=%s", s->name, near ? near : s->choices[0]);
    return message_send(m);
}

static Status one_float(Parser *p, float *out)
{
    if (!at_number(p) || !literal_read_f32(p->token.text, out))
        return parse_wanted(p, "a number that fits f32");
    return parse_next(p);
}

static Status one_string(Parser *p, const char **out)
{
    if (p->token.kind != TOKEN_STRING)
        return parse_wanted(p, "a string");
    *out = arena_copy(p->arena, p->token.text.p, p->token.text.n);
    return parse_next(p);
}

static Status one_bool(Parser *p, bool *out)
{
    *out = parse_at_word(p, "true");
    if (!*out && !parse_at_word(p, "false"))
        return parse_wanted(p, "true or false");
    return parse_next(p);
}

static Status one_dtype(Parser *p, int *out)
{
    DType dtype;
    if (parse_at_word(p, "none"))
        *out = 0;
    else if (p->token.kind == TOKEN_WORD && dtype_from_name(p->token.text, &dtype))
        *out = (int)dtype + 1;
    else
        return parse_wanted(p, "an element type");
    return parse_next(p);
}

static Status several(Parser *p, const AttrSpec *s, void *at)
{
    int64_t *ints = NULL;
    float *floats = NULL;
    const char **strs = NULL;
    size_t n = 0, ci = 1, cf = 1, cs = 1;
    ints = NEWS(p->arena, int64_t, s->kind == ATTR_INTS);
    floats = NEWS(p->arena, float, s->kind == ATTR_FLOATS);
    strs = NEWS(p->arena, const char *, s->kind == ATTR_STRS);
    TRY(parse_sign(p, '['));
    while (!parse_at_sign(p, ']')) {
        if (n == (size_t)p->ir->limits.ints)
            return parse_limit(p, &p->token, "values of an attribute", p->ir->limits.ints, "ints");
        if (n)
            TRY(parse_sign(p, ','));
        if (s->kind == ATTR_INTS) {
            GROW(p->arena, ints, n, ci);
            TRY(parse_integer(p, &ints[n++]));
        } else if (s->kind == ATTR_FLOATS) {
            GROW(p->arena, floats, n, cf);
            TRY(one_float(p, &floats[n++]));
        } else {
            GROW(p->arena, strs, n, cs);
            TRY(one_string(p, &strs[n++]));
        }
    }
    if (s->kind == ATTR_INTS)
        *(Ints *)at = (Ints){ (int)n, ints };
    else if (s->kind == ATTR_FLOATS)
        *(Floats *)at = (Floats){ (int)n, floats };
    else
        *(Strs *)at = (Strs){ (int)n, strs };
    return parse_next(p);
}

static Status attr_payload(Parser *p, Payload **payload)
{
    const Type *type;
    TRY(parse_type(p, &type));
    return parse_payload(p, type, payload);
}

Status parse_attr(Parser *p, const AttrSpec *s, void *attr)
{
    void *at = attr_at(s, attr);
    switch (s->kind) {
    case ATTR_INT:
        return parse_integer(p, at);
    case ATTR_FLOAT:
        return one_float(p, at);
    case ATTR_BOOL:
        return one_bool(p, at);
    case ATTR_STR:
        if (!parse_at_word(p, "none"))
            return one_string(p, at);
        *(const char **)at = NULL;
        return parse_next(p);
    case ATTR_ENUM:
        return choice(p, s, at);
    case ATTR_DTYPE:
        return one_dtype(p, at);
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRS:
        return several(p, s, at);
    case ATTR_PAYLOAD:
        return attr_payload(p, at);
    case ATTR_TYPE:
        return parse_type(p, at);
    case ATTR_END:
        break;
    }
    return OK;
}
