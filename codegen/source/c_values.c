#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/source/c_parts.h"

CValue *c_value(CSource *s, const Node *n)
{
    return fact(&s->values, n);
}

const Tensor *c_constant(CSource *s, const Node *n)
{
    return n ? c_value(s, n)->constant : NULL;
}

/* ---- constants ---- */

Status c_evaluate(CSource *s, const Node *n, const Tensor *const *ins, const Tensor **result)
{
    Graph *g = graph_new(s->g->ir, s->arena, NULL);
    Build b = build_at_end(g);
    Node **operands = NEWS(s->arena, Node *, (size_t)n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        operands[i] = ins[i] ? build_const(&b, ins[i]) : NULL;
    Node *y = build_node_n(&b, n->op, n->attr, n->n_in, operands, type_results(n->type));
    TRY(b.status);
    graph_return(g, 1, &y, NULL);
    Tensor *t = NULL;
    TRY(evaluate(g, NULL, &s->heap, NULL, &t));
    *result = t;
    return OK;
}

static bool all_constant(CSource *s, const Node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        any |= in(n, i) != NULL;
        if (in(n, i) && !c_constant(s, in(n, i)))
            return false;
    }
    return any;
}

Status c_find_constants(CSource *s)
{
    for (Node *n = s->g->first; n; n = n->next) {
        Payload *p = node_payload(n);
        const Tensor *ins[MAX_RANK];
        if (p) {
            c_value(s, n)->constant = payload_cached(p, s->g->ir->diag);
            if (!c_value(s, n)->constant)
                return payload_failed(p, s->g->ir->diag, node_place(n));
            continue;
        }
        if (n->type->kind != TYPE_TENSOR || n->n_regions || n->n_in > MAX_RANK || op_of(n)->mode != MODE_PURE ||
            !all_constant(s, n))
            continue;
        for (int i = 0; i < n->n_in; i++)
            ins[i] = c_constant(s, in(n, i));
        TRY(c_evaluate(s, n, ins, &c_value(s, n)->constant));
    }
    return OK;
}

/* ---- names ---- */

/* Words of C, of C++, and of what every source begins with. */
static const char *const taken[] = {
    "auto",       "break",    "case",     "char",     "const",   "continue", "default",  "do",        "double",
    "else",       "enum",     "extern",   "float",    "for",     "goto",     "if",       "inline",    "int",
    "long",       "register", "restrict", "return",   "short",   "signed",   "sizeof",   "static",    "struct",
    "switch",     "typedef",  "union",    "unsigned", "void",    "volatile", "while",    "bool",      "class",
    "new",        "delete",   "template", "this",     "try",     "catch",    "asm",      "main",      "arena",
    "memcpy",     "memset",   "memmove",  "clamp",    "nearest", "round_24", "quantize", "quotient",  "round_shift",
    "requantize", "room",     "errno",    "NULL",     "x",       "y",        "w",        "c",         "i",
    "j",          "k",        "p",        "q",        "u",       "v",        "sum",      "g",         "r",
    "n",          "m",        "o",        "h",        "t",       "first",    "second",   "namespace", "nibble",
    "add_floats", "share",    "average",  "scaled",
};

const char *c_parameter_name(CSource *s, const char *text)
{
    char *name = arena_printf(s->arena, "%s%.60s", isalpha((unsigned char)*text) ? "" : "v", text);
    bool fresh = false;
    for (char *c = name; *c; c++)
        *c = (char)(isalnum((unsigned char)*c) && (unsigned char)*c < 128 ? *c : '_');
    for (size_t i = 0; i < COUNT(taken) && !s->names.n; i++)
        map_put(&s->names, taken[i], NULL);
    map_put(&s->names, name, &fresh);
    for (int i = 2; !fresh; i++) {
        char *other = arena_printf(s->arena, "%s_%d", name, i);
        map_put(&s->names, other, &fresh);
        if (fresh)
            name = other;
    }
    return name;
}

/* Functions of C have names of small letters and digits. */
const char *c_name(CSource *s, const char *text)
{
    const bool plain = !strpbrk(text, "_./-:") && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(text);
    return c_parameter_name(s, plain ? arena_printf(s->arena, "%s_codes", text) : text);
}

const char *c_text_of(CSource *s, const Node *n)
{
    static const char codes[] = ".codes";
    const char *name = n->name ? n->name : op_of(n)->name;
    const size_t length = strlen(name),
                 less = length > sizeof codes && strcmp(name + length - sizeof codes + 1, codes) == 0 ? sizeof codes - 1
                                                                                                      : 0;
    return arena_printf(s->arena, "%.*s", (int)(length - less), name);
}

const char *c_type(DType dtype)
{
    switch ((int)dtype) {
    case U8:
        return "uint8_t";
    case I8:
        return "int8_t";
    case I32:
        return "int32_t";
    case I64: /* places, which are results */
        return "int64_t";
    default:
        return NULL;
    }
}

/* ---- where values lie ---- */

const Node *c_behind_shapes(const Node *n)
{
    while (n->op == OP_reshape || n->op == OP_flatten || n->op == OP_squeeze || n->op == OP_unsqueeze ||
           n->op == OP_identity)
        n = in(n, 0);
    return n;
}

void c_call(CSource *s, const char *function, int n, const Node *const *args)
{
    GROW(s->arena, s->calls, s->n_calls, s->cap_calls);
    CCall *call = &s->calls[s->n_calls++];
    *call = (CCall){ .function = function, .n = n };
    memcpy(call->args, args, (size_t)n * sizeof *args);
    CValue *made = c_value(s, args[n - 1]);
    made->at = args[n - 1];
}

void c_same(CSource *s, const Node *n, const Node *as)
{
    c_value(s, n)->at = c_value(s, as)->at;
}

static int by_size(const void *a, const void *b)
{
    const CValue *x = *(CValue *const *)a, *y = *(CValue *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->first > y->first) - (x->first < y->first);
}

/* The lowest place that no value which is needed at the same time has. */
static void find_place(CValue **list, size_t n, CValue *v)
{
    v->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            const CValue *o = list[i];
            if (o->first > v->last || o->last < v->first || o->offset >= v->offset + v->bytes ||
                o->offset + o->bytes <= v->offset)
                continue;
            v->offset = o->offset + o->bytes;
            moved = true;
        }
    }
}

void c_plan(CSource *s)
{
    CValue **list = NEWS(s->arena, CValue *, s->n_calls + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n_calls; i++)
        for (int k = 0; k < s->calls[i].n; k++) {
            const Node *at = c_value(s, s->calls[i].args[k])->at;
            CValue *v = c_value(s, at);
            if (v->name || v->constant)
                continue;
            v->last = (int)i;
            if (v->bytes)
                continue;
            const Type *t = type_result(at->type, 0);
            v->bytes = (type_elements(t) * dtype_bits(c_kept(t)) / 8 + 3) / 4 * 4;
            v->first = (int)i;
            list[n++] = v;
        }
    qsort(list, n, sizeof *list, by_size);
    for (size_t i = 0; i < n; i++) {
        find_place(list, i, list[i]);
        const int64_t end = list[i]->offset + list[i]->bytes;
        s->arena_bytes = end > s->arena_bytes ? end : s->arena_bytes;
    }
}

const char *c_place(CSource *s, const Node *n)
{
    const Node *at = c_value(s, n)->at;
    const CValue *v = c_value(s, at);
    if (v->name)
        return v->name;
    const DType kept = c_kept(type_result(n->type, 0));
    const char *type = kept == I8 ? "(int8_t *)" : kept == I32 ? "(int32_t *)(void *)" : "";
    return *type ? arena_printf(s->arena, "%s(room + %" PRId64 ")", type, v->offset)
                 : arena_printf(s->arena, "room + %" PRId64, v->offset);
}
