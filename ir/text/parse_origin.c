/* origin !3 to !7 module="h.0.attn" line="model.py:53 in attend: x = x + self.drop(x)" */
#include <inttypes.h>

#include "ir/text/parser.h"

Status parse_node_number(Parser *p, uint32_t *number)
{
    int64_t value;
    TRY(parse_sign(p, '!'));
    const Token at = p->token;
    TRY(parse_integer(p, &value));
    if (value < 1 || value > UINT32_MAX)
        return fail(p->ir->diag, parse_place(p, &at), "nodes of the model are numbered from 1 to %" PRIu32, UINT32_MAX);
    *number = (uint32_t)value;
    return OK;
}

Status parse_string_mark(Parser *p, const char **text)
{
    TRY(parse_next(p));
    TRY(parse_sign(p, '='));
    if (p->token.kind != TOKEN_STRING)
        return parse_wanted(p, "a string");
    if ((int64_t)p->token.text.n > p->ir->limits.name_bytes)
        return parse_limit(p, &p->token, "bytes of a name", p->ir->limits.name_bytes, "name_bytes");
    *text = name_of(&p->ir->names, p->token.text.p, p->token.text.n);
    return parse_next(p);
}

Status parse_origin(Parser *p)
{
    CodePlace o = { 0 };
    const Token at = p->token;
    if (p->depth != 1)
        return fail(p->ir->diag, parse_place(p, &at), "origins stand in the outermost graph");
    TRY(parse_next(p));
    TRY(parse_node_number(p, &o.first));
    o.last = o.first;
    if (parse_at_word(p, "to")) {
        TRY(parse_next(p));
        TRY(parse_node_number(p, &o.last));
    }
    if (parse_at_word(p, "module"))
        TRY(parse_string_mark(p, &o.module));
    if (parse_at_word(p, "line"))
        TRY(parse_string_mark(p, &o.line));
    if (!o.module && !o.line)
        return parse_wanted(p, "module= or line=");
    if (!code_places_add(parse_level(p)->graph, &o))
        return fail(p->ir->diag, parse_place(p, &at), "origins ascend, and each node has one");
    return OK;
}
