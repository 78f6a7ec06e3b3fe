/* Gradient of ai.onnx.preview.training: it names values of the graph around it.  What lies between them becomes the
 * body of a `gradient`, a function of the values that the operator is fed. */
#include "frontends/onnx/read/importer.h"
#include "ir/copy.h"
#include "ops/control/control.h"

/* Of a node of the graph: what it becomes inside; and whether it lies between. */
typedef struct Between {
    Node *inside;
    bool depends; /* on one of the xs and zs */
    bool wanted;  /* by y */
} Between;

typedef struct Section {
    Importer *im;
    Scope *scope;
    Call *call;
    Facts facts;
    Graph *body;
    Build inner;
} Section;

static Between *between(Section *k, const Node *n)
{
    return fact(&k->facts, n);
}

/* A value of the graph that the operator stands in. */
static Status find_named(Section *k, const char *name, Node **value)
{
    *value = scope_value(k->im, k->scope, name);
    return *value ? OK : call_fail(k->call, "nothing defines %s", name);
}

/* Parameters in place of the values named, of the types of those fed. */
static Status cut_leaves(Section *k, Strs names, int first)
{
    for (int i = 0; i < names.n; i++) {
        Node *leaf;
        TRY(find_named(k, names.v[i], &leaf));
        const Node *fed = call_in(k->call, first + i);
        if (!fed || !type_agrees(fed->type, leaf->type))
            return call_fail(k->call, "operand %d is not fit to be %s", first + i, names.v[i]);
        Node *p = graph_input(k->body, NULL, fed->type);
        if (!between(k, leaf)->inside)
            *between(k, leaf) = (Between){ .inside = p, .depends = true };
    }
    return OK;
}

static void mark(Section *k, Node *y)
{
    Graph *g = k->scope->graph;
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (!between(k, n)->inside && in(n, i))
                between(k, n)->depends |= between(k, in(n, i))->depends;
    between(k, y)->wanted = true;
    for (Node *n = g->last; n; n = n->prev) {
        const Between *m = between(k, n);
        for (int i = 0; m->wanted && m->depends && !m->inside && i < n->n_in; i++)
            if (in(n, i))
                between(k, in(n, i))->wanted = true;
    }
}

/* Shapes and axes stay visible as constants. */
static bool is_small_constant(const Node *n)
{
    enum { MOST_ELEMENTS = 1024 };
    return (n->op == OP_param || n->op == OP_const) && n->type->kind == TYPE_TENSOR &&
           dtype_is_integer(n->type->dtype) && type_elements(n->type) <= MOST_ELEMENTS;
}

/* What a value is inside: a parameter when it does not depend on what was cut. */
static Node *inside(Section *k, Node *n)
{
    Between *m = n ? between(k, n) : NULL;
    if (!m || m->inside)
        return m ? m->inside : NULL;
    if (is_small_constant(n))
        return m->inside = copy_call(&k->inner, n, NULL);
    m->inside = graph_input(k->body, NULL, n->type);
    call_set_in(k->call, k->call->n_in, n);
    return m->inside;
}

static void copy_between(Section *k)
{
    for (Node *n = k->scope->graph->first; n; n = n->next) {
        Between *m = between(k, n);
        if (!m->wanted || !m->depends || m->inside)
            continue;
        Node **ins = NEWS(k->im->arena, Node *, n->n_in + 1);
        for (int i = 0; i < n->n_in; i++)
            ins[i] = inside(k, in(n, i));
        between(k, n)->inside = copy_call(&k->inner, n, ins);
    }
}

Status import_gradient(Importer *im, Scope *s, Call *c, Node **y)
{
    const CallAttr *xs = call_attr(c, "xs"), *zs = call_attr(c, "zs");
    const char *name = call_string(c, "y", NULL);
    const GradientAttr at = {
        .xs = xs ? xs->strings : (Strs){ 0 }, .zs = zs ? zs->strings : (Strs){ 0 }, .y = name, .operands = c->n_in
    };
    Section k = { .im = im, .scope = s, .call = c };
    Node *target;
    if (!name || !at.xs.n || c->n_in != at.xs.n + at.zs.n || c->n_out != at.xs.n)
        return call_fail(c, "names %d values and y, is fed %d and gives %d", at.xs.n + at.zs.n, c->n_in, c->n_out);
    TRY(find_named(&k, name, &target));
    k.facts = facts_open(im->arena, sizeof(Between));
    k.body = region_new(s->graph);
    k.inner = build_at_end(k.body);
    TRY(cut_leaves(&k, at.xs, 0));
    TRY(cut_leaves(&k, at.zs, at.xs.n));
    mark(&k, target);
    copy_between(&k);
    Node *result = inside(&k, target);
    graph_return(k.body, 1, &result, NULL);
    *y = build_with_regions(c->build, OP_gradient, &at, c->n_in, c->in, c->n_out, 1, &k.body);
    return c->build->status;
}
