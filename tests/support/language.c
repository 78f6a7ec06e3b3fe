#include "support/language.h"

#include "ops/card/cards.h"

/* every(...): an attribute of each kind. */
typedef struct EveryAttr {
    int64_t i;
    float f;
    bool b;
    const char *s;
    int e;
    int d;
    Ints is;
    Floats fs;
    Strs ss;
    Payload *p;
    const Type *t;
    int64_t needed;
} EveryAttr;

static const char *const choices[] = { "red", "green", "deep blue", NULL };

static const AttrSpec every_attrs[] = {
    ATTR(EveryAttr, i, INT, 7),
    ATTR(EveryAttr, f, FLOAT, 0.5),
    ATTR(EveryAttr, b, BOOL, true),
    ATTR_TEXT(EveryAttr, s, "plain"),
    ATTR_CHOICE(EveryAttr, e, choices, 1),
    ATTR_OPTIONAL(EveryAttr, d, DTYPE),
    ATTR_OPTIONAL(EveryAttr, is, INTS),
    ATTR_OPTIONAL(EveryAttr, fs, FLOATS),
    ATTR_OPTIONAL(EveryAttr, ss, STRS),
    ATTR_OPTIONAL(EveryAttr, p, PAYLOAD),
    ATTR_OPTIONAL(EveryAttr, t, TYPE),
    ATTR_REQUIRED(EveryAttr, needed, INT),
    ATTR_LAST,
};

static const Type *infer_declared(Infer *q)
{
    return q->declared ? q->declared : infer_fail(q, "has no type of its own");
}

/* same(x, ...): the type of the first operand. */
static const Type *infer_same(Infer *q)
{
    for (int i = 1; i < q->n_in; i++)
        if (q->in[i] && q->in[i] != q->in[0])
            return infer_fail(q, "operand %d has another type than operand 0", i);
    return q->in[0] ? q->in[0] : infer_fail(q, "operand 0 is absent");
}

static const OpDef op_every = {
    .name = "every", .max_in = -1, .max_out = -1, .attrs = every_attrs, .infer = infer_declared
};
static const OpDef op_same = { .name = "same", .min_in = 1, .max_in = 3, .infer = infer_same };
static const OpDef op_both = { .name = "both", .max_in = -1, .max_out = 4, .n_regions = -1, .infer = infer_declared };

static void keep_message(void *user, const Message *m)
{
    Language *l = user;
    message_print(&l->messages, m);
    GROW(&l->arena, l->list, l->n_list, l->cap_list);
    l->list[l->n_list++] = m;
}

void language_open(Language *l)
{
    memory_open(&l->memory, NULL);
    language_open_over(l);
}

void language_open_over(Language *l)
{
    l->list = NULL;
    l->n_list = l->cap_list = 0;
    l->ops.n = 0;
    l->source = (SourceMap){ 0 };
    arena_open(&l->arena, &l->memory);
    text_open(&l->messages, &l->arena);
    diag_open(&l->diag, &l->arena, keep_message, l);
    const OpDef *const extra[] = { &op_every, &op_same, &op_both };
    const OpDef **defs = NEWS(&l->arena, const OpDef *, ops_table.n + COUNT(extra));
    for (size_t i = 0; i < ops_table.n; i++)
        defs[l->ops.n++] = ops_table.defs[i];
    for (size_t i = 0; i < COUNT(extra); i++)
        defs[l->ops.n++] = extra[i];
    l->ops.defs = defs;
    ir_open(&l->ir, &l->arena, &l->ops, &l->diag);
}

void language_close(Language *l)
{
    arena_close(&l->arena);
}

Module *language_parse(Language *l, const char *text, Blobs *blobs)
{
    Module *m;
    l->messages.n = l->n_list = 0;
    (void)parse_module(&l->ir, &l->arena, str(text), "test.qir", blobs, &l->source, &m);
    return m;
}

const char *language_print(Language *l, const Module *m, Blobs *blobs)
{
    Text out;
    text_open(&out, &l->arena);
    return print_module(&out, m, blobs) == OK ? text_get(&out) : NULL;
}
