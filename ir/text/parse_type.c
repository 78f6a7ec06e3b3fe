/* Types in text: f32[2,?], (f32[], i64[*]), seq(..), optional(..), none, opaque(".."). */
#include <inttypes.h>
#include <string.h>

#include "ir/text/literal.h"
#include "ir/text/parser.h"

static Status dimension(Parser *p, int64_t *dim)
{
    const Token at = p->token;
    if (parse_at_sign(p, '?')) {
        *dim = DIM_UNKNOWN;
        return parse_next(p);
    }
    if (p->token.kind != TOKEN_NUMBER)
        return parse_wanted(p, "a number or ?");
    TRY(parse_integer(p, dim));
    if (*dim < 0)
        return fail(p->ir->diag, parse_place(p, &at), "a dimension is not negative");
    if (*dim > p->ir->limits.dim)
        return parse_limit(p, &at, "a dimension", p->ir->limits.dim, "dim");
    return OK;
}

static Status dimensions(Parser *p, DType dtype, const Type **type)
{
    int64_t dims[MAX_RANK];
    int rank = 0;
    const int64_t most = p->ir->limits.rank < MAX_RANK ? p->ir->limits.rank : MAX_RANK;
    TRY(parse_sign(p, '['));
    if (parse_at_sign(p, '*')) {
        TRY(parse_next(p));
        *type = type_unranked(&p->ir->types, dtype);
        return parse_sign(p, ']');
    }
    while (!parse_at_sign(p, ']')) {
        if (rank == most)
            return parse_limit(p, &p->token, "dimensions", most, "rank");
        if (rank)
            TRY(parse_sign(p, ','));
        TRY(dimension(p, &dims[rank++]));
    }
    *type = type_tensor(&p->ir->types, dtype, rank, dims);
    return parse_next(p);
}

static Status opaque(Parser *p, const Type **type)
{
    TRY(parse_next(p));
    TRY(parse_sign(p, '('));
    if (p->token.kind != TOKEN_STRING)
        return parse_wanted(p, "a string");
    *type = type_opaque(&p->ir->types, p->token.text.p);
    TRY(parse_next(p));
    return parse_sign(p, ')');
}

static Status unknown_type(Parser *p)
{
    const char *words[DTYPE_COUNT + 4] = { "seq", "optional", "none", "opaque" };
    for (int d = 0; d < DTYPE_COUNT; d++)
        words[4 + d] = dtype_name((DType)d);
    if (p->token.kind != TOKEN_WORD)
        return parse_wanted(p, "a type");
    const char *word = arena_copy(&p->scratch, p->token.text.p, p->token.text.n);
    const char *near = str_nearest(word, words, COUNT(words));
    Message *m =
        message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, &p->token), "no type is called %s", word);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

/* What begins at the token: a whole type, or (*group) one with parts, stepped into. */
static Status head(Parser *p, const Type **type, TypeKind *group)
{
    DType dtype;
    *type = NULL;
    *group = parse_at_sign(p, '(')          ? TYPE_TUPLE
             : parse_at_word(p, "seq")      ? TYPE_SEQ
             : parse_at_word(p, "optional") ? TYPE_OPTIONAL
                                            : TYPE_NONE;
    if (*group != TYPE_NONE) {
        if (*group != TYPE_TUPLE)
            TRY(parse_next(p));
        return parse_sign(p, '(');
    }
    if (parse_at_word(p, "opaque"))
        return opaque(p, type);
    if (parse_at_word(p, "none")) {
        *type = type_none(&p->ir->types);
        return parse_next(p);
    }
    if (p->token.kind != TOKEN_WORD || !dtype_from_name(p->token.text, &dtype))
        return unknown_type(p);
    TRY(parse_next(p));
    return dimensions(p, dtype, type);
}

static Status add_part(Parser *p, const Type *type)
{
    if (p->n_parts == (size_t)p->ir->limits.node_io)
        return parse_limit(p, &p->token, "parts of a type", p->ir->limits.node_io, "node_io");
    GROW(&p->scratch, p->parts, p->n_parts, p->cap_parts);
    p->parts[p->n_parts++] = type;
    return OK;
}

static Status close_type(Parser *p, const OpenType *open, const Type **type)
{
    const size_t n = p->n_parts - open->first;
    const Type *const *parts = n ? p->parts + open->first : NULL;
    if (open->kind != TYPE_TUPLE && n != 1)
        return parse_wanted(p, "one type");
    Types *types = &p->ir->types;
    *type = open->kind == TYPE_TUPLE ? type_tuple(types, (int)n, parts)
            : open->kind == TYPE_SEQ ? type_seq(types, parts[0])
                                     : type_optional(types, parts[0]);
    p->n_parts = open->first;
    return parse_next(p);
}

Status parse_type(Parser *p, const Type **type)
{
    enum { DEEPEST = 32 };
    OpenType stack[DEEPEST];
    const int64_t most = p->ir->limits.type_nesting < DEEPEST ? p->ir->limits.type_nesting : DEEPEST;
    int depth = 0;
    p->n_parts = 0;
    for (;;) {
        TypeKind group;
        const Token at = p->token;
        TRY(head(p, type, &group));
        if (group != TYPE_NONE) {
            if (depth == most)
                return parse_limit(p, &at, "types inside each other", most, "type_nesting");
            stack[depth++] = (OpenType){ group, p->n_parts };
            if (!parse_at_sign(p, ')'))
                continue;
            TRY(close_type(p, &stack[--depth], type));
        }
        while (depth) {
            TRY(add_part(p, *type));
            if (!parse_at_sign(p, ')'))
                break;
            TRY(close_type(p, &stack[--depth], type));
        }
        if (!depth)
            return OK;
        TRY(parse_sign(p, ','));
    }
}
