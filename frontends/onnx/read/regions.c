/* Subgraphs become closed regions: what a body reads from outside turns into operands of the node and parameters
 * of the region, in the same order for every region of the node. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/dialect_read.h"
#include "frontends/onnx/read/importer.h"

/* What a body's own inputs are, by position. */
typedef const Type *InputType(const Call *c, int i, const Type *declared);

static const Type *loosened(Types *types, const Type *t)
{
    return t->kind == TYPE_TENSOR ? type_unranked(types, t->dtype) : t;
}

/* A carried value may change its shape from one iteration to the next, so only what the file declares is certain. */
static const Type *carried_type(const Call *c, const Node *operand, const Type *declared)
{
    if (declared && declared->kind != TYPE_OPAQUE)
        return declared;
    return operand ? loosened(&call_ir(c)->types, operand->type) : NULL;
}

static const Type *loop_input(const Call *c, int i, const Type *declared)
{
    Types *types = &call_ir(c)->types;
    if (i == 0)
        return type_scalar(types, I64);
    if (i == 1)
        return type_scalar(types, BOOL);
    return carried_type(c, call_in(c, i), declared);
}

static const Type *scan_input(const Call *c, int i, const Type *declared)
{
    const Ints axes = call_ints(c, "scan_input_axes");
    const int first = c->n_in - (int)call_int(c, "num_scan_inputs", 0);
    const Node *operand = call_in(c, i);
    if (i < first)
        return carried_type(c, operand, declared);
    if (!operand || operand->type->kind != TYPE_TENSOR)
        return declared;
    const Type *t = operand->type;
    int64_t axis = i - first < axes.n ? axes.v[i - first] : 0, dims[MAX_RANK];
    if (t->rank < 1 || axis < -t->rank || axis >= t->rank)
        return declared ? declared : loosened(&call_ir(c)->types, t);
    axis += axis < 0 ? t->rank : 0;
    for (int k = 0, j = 0; k < t->rank; k++)
        if (k != axis)
            dims[j++] = t->dims[k];
    return type_tensor(&call_ir(c)->types, t->dtype, t->rank - 1, dims);
}

static const Type *map_input(const Call *c, int i, const Type *declared)
{
    const Node *operand = call_in(c, i);
    if (!operand)
        return declared;
    return operand->type->kind == TYPE_SEQ ? operand->type->parts[0] : operand->type;
}

static const Type *no_input(const Call *c, int i, const Type *declared)
{
    (void)c, (void)i;
    return declared;
}

/* The scores and probabilities of FlexAttention: what its softmax computes in. */
static const Type *matrix_input(const Call *c, int i, const Type *declared)
{
    static const int64_t open[] = { DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN };
    const Node *q = call_in(c, 0);
    DType precision = q && q->type->kind == TYPE_TENSOR && q->type->dtype == F64 ? F64 : F32;
    (void)i, (void)declared;
    dtype_from_onnx(call_int(c, "softmax_precision", 0), &precision);
    return type_tensor(&call_ir(c)->types, precision, 4, open);
}

static const struct {
    const char *op, *domain;
    const char *bodies[2];
    InputType *input;
    bool optional; /* a body that is missing gives back what it takes */
} forms[] = {
    { "If", "", { "then_branch", "else_branch" }, no_input, false },
    { "Loop", "", { "body", NULL }, loop_input, false },
    { "Scan", "", { "body", NULL }, scan_input, false },
    { "SequenceMap", "", { "body", NULL }, map_input, false },
    { "Gradient", QCC_DOMAIN, { "body", NULL }, map_input, false },
    { "fused", QCC_DOMAIN, { "body", NULL }, no_input, false },
    { "FlexAttention", ONNX_PREVIEW, { "score_mod", "prob_mod" }, matrix_input, true },
};

static Status import_body(Importer *im, Scope *s, const Call *c, const Onnx__GraphProto *g, InputType *input, int r)
{
    s->proto = g;
    TRY(import_initializers(im, s, g));
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = import_name(im, g->input[i]->name);
        const Type *declared = g->input[i]->type ? onnx_type(im->ir, g->input[i]->type) : NULL;
        const Type *type = c->ours && declared ? declared : input(c, (int)i, declared);
        if (!type)
            return call_fail(c, "input %s of its body has no type", name);
        TRY(scope_define(im, s, name, graph_input(s->graph, shown_name(im, name), type)));
    }
    if (c->ours)
        TRY(dialect_captures(im, s->outer, s, c, r));
    return import_graph_body(im, s, g);
}

/* Adds what a region took to what all regions of the node take, in the order of its taking. */
static void join_captures(Importer *im, const Scope *s, Map *seen, Node ***all, size_t *n_all, size_t *cap)
{
    for (size_t i = 0; i < s->n_captured; i++) {
        bool fresh;
        map_put_u64(seen, (uintptr_t)s->captured[i], &fresh);
        if (!fresh)
            continue;
        GROW(im->arena, *all, *n_all, *cap);
        (*all)[(*n_all)++] = s->captured[i];
    }
}

/* Gives a region a parameter for each of them: its own, or one that it does not read. */
static void set_parameters(Importer *im, const Scope *s, size_t own, Node *const *all, size_t n_all)
{
    Graph *g = s->graph;
    Node **inputs = NEWS(im->arena, Node *, own + n_all + 1);
    Map inside;
    map_open(&inside, im->arena);
    for (size_t i = 0; i < s->n_captured; i++)
        map_put_u64(&inside, (uintptr_t)s->captured[i], NULL)->value.p = s->inside[i];
    if (own)
        memcpy(inputs, g->inputs, own * sizeof *inputs);
    for (size_t i = 0; i < n_all; i++) {
        const MapEntry *e = map_find_u64(&inside, (uintptr_t)all[i]);
        inputs[own + i] = e ? e->value.p : graph_input(g, NULL, all[i]->type);
    }
    g->inputs = inputs;
    g->n_inputs = g->cap_inputs = own + n_all;
}

/* Gives every region the same captures in the same order, and the node the values for them. */
static void align_captures(Importer *im, Call *c, Scope *scopes, const size_t *own, int n)
{
    Node **all = NULL;
    size_t n_all = 0, cap = 0;
    Map seen;
    map_open(&seen, im->arena);
    for (int r = 0; r < n; r++)
        join_captures(im, &scopes[r], &seen, &all, &n_all, &cap);
    for (int r = 0; r < n; r++)
        set_parameters(im, &scopes[r], own[r], all, n_all);
    Node **in = NEWS(im->arena, Node *, (size_t)c->n_in + n_all + 1);
    if (c->n_in)
        memcpy(in, c->in, (size_t)c->n_in * sizeof *in);
    if (n_all)
        memcpy(in + c->n_in, all, n_all * sizeof *in);
    c->in = in;
    c->n_in += (int)n_all;
}

/* How many operands are the op's own, before the captures: ours, so that a reader need not count. */
static Status note_operands(Importer *im, Call *c, const char *op)
{
    const char *noted = c->ours ? node_note(im, c->ours, QCC_OWN) : NULL;
    uint64_t own = (uint64_t)c->n_in;
    if (noted)
        TRY(note_number(im, &noted, INT32_MAX, &own));
    if (strcmp(op, "If") != 0 && (noted || !c->ours))
        call_set_int(c, "operands", (int64_t)own);
    return OK;
}

/* Our own nodes say what they capture; every region has it already, in that order. */
static Status add_captures(Importer *im, Call *c, const Scope *scopes, const size_t *own, int n)
{
    const Scope *first = &scopes[0];
    for (int r = 0; r < n; r++)
        if (scopes[r].n_captured != first->n_captured || scopes[r].graph->n_inputs != own[r] + first->n_captured)
            return call_fail(c, "its body reads what it does not take");
    Node **in = NEWS(im->arena, Node *, (size_t)c->n_in + first->n_captured + 1);
    if (c->n_in)
        memcpy(in, c->in, (size_t)c->n_in * sizeof *in);
    if (first->n_captured)
        memcpy(in + c->n_in, first->captured, first->n_captured * sizeof *in);
    c->in = in;
    c->n_in += (int)first->n_captured;
    return OK;
}

Status import_regions(Importer *im, Scope *s, Call *c, const char *op, Graph ***regions, int *n_regions)
{
    const bool any_domain = strcmp(c->domain, QCC_DOMAIN) == 0;
    size_t form = 0;
    while (form < COUNT(forms) &&
           (!op || strcmp(forms[form].op, op) != 0 || (!any_domain && strcmp(forms[form].domain, c->domain) != 0)))
        form++;
    if (form == COUNT(forms))
        return OK;
    if (im->depth == (int)im->ir->limits.graph_nesting)
        return call_fail(c, "graphs nest deeper than the limit graph_nesting (%" PRId64 ")",
                         im->ir->limits.graph_nesting);

    const char *where = im->where;
    Scope scopes[2] = { { 0 } };
    size_t own[2] = { 0 };
    const int n = forms[form].bodies[1] ? 2 : 1;
    *regions = NEWS(im->arena, Graph *, n);
    im->depth++;
    for (int r = 0; r < n; r++) {
        const CallAttr *body = call_attr(c, forms[form].bodies[r]);
        if (!forms[form].optional && (!body || !body->g))
            return call_fail(c, "%s is missing", forms[form].bodies[r]);
        scopes[r].outer = s;
        scopes[r].graph = (*regions)[r] = region_new(s->graph);
        map_open(&scopes[r].values, im->arena);
        if (!body || !body->g) {
            Node *same = graph_input(scopes[r].graph, NULL, forms[form].input(c, 0, NULL));
            graph_return(scopes[r].graph, 1, &same, NULL);
            own[r] = 1;
            continue;
        }
        TRY(import_body(im, &scopes[r], c, body->g, forms[form].input, r));
        own[r] = body->g->n_input;
    }
    im->depth--;
    im->where = where;
    TRY(note_operands(im, c, op));
    *n_regions = n;
    if (c->ours)
        return add_captures(im, c, scopes, own, n);
    align_captures(im, c, scopes, own, n);
    return OK;
}
