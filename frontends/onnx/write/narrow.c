#include "frontends/onnx/narrow.h"

#include <string.h>

#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/narrowing.h"
#include "frontends/onnx/write/standard_words.h"
#include "ir/build.h"
#include "ir/verify.h"

static const char *type_word(const Narrowing *x)
{
    return x->options->to == BF16 ? "bf16" : "fp16";
}

/* ---- what is kept ---- */

bool narrow_keeps(const Narrowing *x, const char *name)
{
    return x->options->keep_all || map_find(&x->keep, name);
}

static Map signature_names(const Narrowing *x)
{
    const Graph *g = x->graph;
    Map names;
    map_open(&names, x->arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name)
            map_put(&names, g->inputs[i]->name, NULL);
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i))
            map_put(&names, graph_result_name(g, i), NULL);
    return names;
}

static Status check_kept(const Narrowing *x)
{
    const Graph *g = x->graph;
    const Map names = signature_names(x);
    for (size_t i = 0; i < x->options->n_keep; i++) {
        const char *name = x->options->keep[i];
        if (map_find(&names, name))
            continue;
        Message *m = message_new(x->diag, SEVERITY_ERROR, USAGE, (Place){ .where = "--keep-io", .byte = -1 },
                                 "no input or output is called %s", name);
        for (size_t k = 0; k < g->n_inputs; k++)
            message_at(m, "%s", g->inputs[k]->name);
        for (int k = 0; k < graph_n_results(g); k++)
            if (graph_result_name(g, k))
                message_at(m, "%s", graph_result_name(g, k));
        return message_send(m);
    }
    return OK;
}

/* ---- operators without the type ---- */

static const OnnxSchema *schema_of(const Node *n)
{
    const OnnxName *name = &op_of(n)->onnx;
    return name->op ? schema_find(name->domain ? name->domain : "", name->op, narrow_opset(n)) : NULL;
}

/* Whether an operator never gives the type, rather than not taking it in one place. */
static bool gives_none(const Narrowing *x, const Node *n)
{
    const OnnxSchema *s = schema_of(n);
    const Type *type = type_result(n->type, 0);
    return !s || !encode_takes(s, schema_output(s, 0), narrowed(&x->graph->ir->types, type, x->options->to));
}

static Status no_form(const Narrowing *x, Node *const *list, size_t n)
{
    bool kept = true;
    Message *m = message_new(x->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE, "%zu operator%s no form with %s", n,
                             n == 1 ? " has" : "s have", type_word(x));
    for (size_t i = 0; i < n; i++) {
        const OnnxSchema *s = schema_of(list[i]);
        message_at(m, "%s, %s", node_place(list[i]).where, s ? s->op : op_of(list[i])->name);
        for (int k = 0; s && k < s->n_types; k++)
            kept &= !(s->types[k].tensor >> ONNX_FLOAT & 1) || s->types[k].tensor >> ONNX_FLOAT16 & 1;
    }
    if (x->options->to == BF16 && kept)
        message_try(m, "--dtype fp16");
    if (!x->options->keep_all)
        message_try(m, "--keep-io '*', if what they take and give is all in the signature");
    return message_send(m);
}

/* What lacks the type may be made of what has it. */
static Status settle_types(Narrowing *x)
{
    enum { MOST_ROUNDS = 8 };
    for (int round = 0; round < MOST_ROUNDS; round++) {
        Node **list;
        Status status = OK;
        bool changed = false;
        Map left;
        narrow_sort(x);
        const size_t n = narrow_conflicts(x, &list);
        for (size_t i = 0; i < n; i++)
            changed |= gives_none(x, list[i]) && standardize_node(list[i], &status);
        TRY(status);
        if (!n)
            return OK;
        if (!changed)
            return no_form(x, list, n);
        map_open(&left, x->arena);
        TRY(standardize_graph(x->graph, &left));
    }
    return fail(x->diag, NOWHERE, "operators without %s do not come to an end", type_word(x));
}

/* ---- types ---- */

static const Type *type_of(Narrowing *x, const Node *n)
{
    Types *types = &x->graph->ir->types;
    if (n->type->kind != TYPE_TUPLE)
        return result_narrows(x, n, 0) ? narrowed(types, n->type, x->options->to) : n->type;
    const int count = type_results(n->type);
    const Type **parts = NEWS(x->arena, const Type *, count + 1);
    for (int i = 0; i < count; i++) {
        const Type *part = type_result(n->type, i);
        parts[i] = result_narrows(x, n, i) ? narrowed(types, part, x->options->to) : part;
    }
    return type_tuple(types, count, parts);
}

/* An attribute that says the type of a result follows it. */
static void follow(Node *n)
{
    const char *complaint;
    const AttrSpec *s = says_type(n);
    const Type *type = s ? type_result(n->type, 0) : NULL;
    while (type && (type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL))
        type = type->parts[0];
    if (!type || type->kind != TYPE_TENSOR || !dtype_is_float(type->dtype) || type->dtype == F64)
        return;
    const int said = *(const int *)attr_at(s, n->attr), says = (int)type->dtype + 1;
    if (said == says || (!said && node_infer(n, &complaint) == n->type))
        return;
    void *attr = attrs_copy(n->graph->arena, op_of(n)->attrs, n->attr);
    *(int *)attr_at(s, attr) = says;
    n->attr = attr;
}

/* So do a type that is stated, and the value that fills a result; absent that is an f32 zero. */
static Status fill(Narrowing *x, Node *n)
{
    Graph *g = n->graph;
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++) {
        Payload *p = s->kind == ATTR_PAYLOAD ? *(Payload **)attr_at(s, n->attr) : NULL;
        const Type *type = s->kind == ATTR_TYPE ? *(const Type **)attr_at(s, n->attr) : NULL;
        if (!(type && holds_f32(type)) && (s->kind != ATTR_PAYLOAD || (p && !holds_f32(p->type))))
            continue;
        void *attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
        n->attr = attr;
        if (type) {
            *(const Type **)attr_at(s, attr) = narrowed(&g->ir->types, type, x->options->to);
            continue;
        }
        p = p ? p : payload_of(g->arena, tensor_new(g->arena, type_vector(&g->ir->types, F32, 1)));
        *(Payload **)attr_at(s, attr) = p = narrow_payload(x, p);
        if (!p)
            return UNSUPPORTED;
    }
    return OK;
}

static void retype_inputs(Narrowing *x, const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        g->inputs[i]->type = type_of(x, g->inputs[i]);
}

/* All types first: what an attribute has to say depends on those of the operands. */
static Status retype(Narrowing *x)
{
    Graph *g = x->graph;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!narrow_keeps(x, g->inputs[i]->name))
            g->inputs[i]->type = type_of(x, g->inputs[i]);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        for (int r = 0; r < n->n_regions; r++)
            retype_inputs(x, n->regions[r]);
        const Type *type = op_of(n)->structural && n->op != OP_part && n->op != OP_tuple ? n->type : type_of(x, n);
        if (type != n->type)
            TRY(fill(x, n));
        n->type = type;
    }
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (!op_of(n)->structural)
            follow(n);
    return OK;
}

/* ---- casts at the edges ---- */

static const char *narrow_name(const Narrowing *x, const char *name)
{
    const char *text = arena_printf(x->arena, "%s.%s", name, type_word(x));
    return name_of(&x->graph->ir->names, text, strlen(text));
}

/* The results that become narrow and are to leave as f32. */
static const bool *kept_results(Narrowing *x)
{
    const Graph *g = x->graph;
    bool *wanted = NEWS(x->arena, bool, graph_n_results(g) + 1);
    for (int i = 0; i < graph_n_results(g); i++)
        wanted[i] =
            operand_narrows(x, g->ret, i) && graph_result_name(g, i) && narrow_keeps(x, graph_result_name(g, i));
    return wanted;
}

/* Inputs that are to be read narrow and stay f32. */
static void cast_input(Narrowing *x, Node *input)
{
    Graph *g = x->graph;
    Build b = { .graph = g, .before = g->first };
    Node *cast = build_cast(&b, input, x->options->to);
    cast->name = narrow_name(x, input->name);
    for (Use *u = input->uses, *next; u; u = next) {
        next = u->next;
        const int i = (int)(u - u->user->in);
        if (u->user != cast && !(u->user == g->ret && narrow_keeps(x, graph_result_name(g, i))))
            node_set_in(u->user, i, cast);
    }
}

/* The public name stays with what leaves. */
static Node *cast_result(Narrowing *x, Node *value, const char *name)
{
    Build b = build_at_end(x->graph);
    Node *cast = build_cast(&b, value, F32);
    if (name && value->name && strcmp(value->name, name) == 0 && value->op != OP_input)
        value->name = narrow_name(x, name);
    cast->name = name;
    return cast;
}

static void cast_results(Narrowing *x, const bool *wanted)
{
    Graph *g = x->graph;
    const int n = graph_n_results(g);
    Node **results = NEWS(x->arena, Node *, n + 1);
    const char **names = NEWS(x->arena, const char *, n + 1);
    for (int i = 0; i < n; i++) {
        names[i] = graph_result_name(g, i);
        results[i] = graph_result(g, i);
    }
    for (int i = 0; i < n; i++) {
        const bool narrow = wanted[i] && results[i]->type->kind == TYPE_TENSOR && results[i]->type->dtype != F32;
        results[i] = narrow ? cast_result(x, results[i], names[i]) : results[i];
    }
    graph_return_marked(g, n, results, names, g->marks);
}

static Status keep_signature(Narrowing *x, const bool *wanted)
{
    Graph *g = x->graph;
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *input = g->inputs[i];
        if (!narrow_keeps(x, input->name) || !result_narrows(x, input, 0) || !input->uses)
            continue;
        if (input->type->kind != TYPE_TENSOR)
            return fail_as(x->diag, UNSUPPORTED, (Place){ .where = input->name, .byte = -1 },
                           "is no tensor, so no Cast can keep it");
        cast_input(x, input);
    }
    cast_results(x, wanted);
    return OK;
}

/* ---- all of it ---- */

static Status narrow(Narrowing *x)
{
    TRY(check_kept(x));
    TRY(settle_types(x));
    const bool *wanted = kept_results(x);
    TRY(narrow_constants(x));
    TRY(retype(x));
    TRY(keep_signature(x, wanted));
    return verify(x->graph, NULL);
}

Status onnx_narrow(Graph *g, Diag *d, const NarrowOptions *o)
{
    Arena arena;
    Narrowing x = { .graph = g, .diag = d, .arena = &arena, .options = o };
    arena_open(&arena, g->ir->memory);
    map_open(&x.keep, &arena);
    for (size_t i = 0; i < o->n_keep; i++)
        map_put(&x.keep, o->keep[i], NULL);
    const Status status = narrow(&x);
    arena_close(&arena);
    return status;
}
