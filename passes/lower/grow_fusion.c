/* grow-fusion: calls that can share one pass over one iteration space become the body of one `fused` node.
 *
 *     graph @f(%x: f32[2,3], %w: f32[3,4], %b: f32[4]) -> (%z) {
 *         %p: f32[2,4] = matmul(%x, %w)
 *         %y: f32[2,4] = add(%p, %b)
 *         %z: f32[2,4] = relu(%y)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %w: f32[3,4], %b: f32[4]) -> (%z) {
 *         %z: f32[2,4] = fused(%x, %w, %b) { (%0: f32[2,3], %1: f32[3,4], %2: f32[4]) -> (%3)
 *             %p: f32[2,4] = matmul(%0, %1)
 *             %y: f32[2,4] = add(%p, %2)
 *             %3: f32[2,4] = relu(%y)
 *         } ours
 *     }
 *
 * What a body may hold is in ops/region/region.h; who joins whom in passes/lower/fusion_groups.c.  A row or a reduction
 * that stays alone is a body too, so that every engine has one way to run them. */
#include "passes/engine/pass.h"
#include "passes/lower/fusion_groups.h"

/* A body while it is made. */
typedef struct Body {
    FusionGroups *gs;
    const FusionGroup *group;
    Graph *graph;
    Region region;
    Build inside;
    Map constants, parameters; /* Node * of the body, by the node outside that it stands for */
    Node **operands;
    size_t n_operands, cap_operands;
    Node **results;
    int n_results;
} Body;

/* Scalars that rows can read, the axes of a reduction, and the numbers of elements of which one is marked. */
static bool is_constant_inside(const Body *b, const Node *def, const Node *reader, int operand)
{
    Reduction fold;
    int index;
    return def->op == OP_const && node_constant(def, 0) && reader != b->region.contraction &&
           (type_elements(def->type) == 1 || (operand > 0 && region_folds(reader, &fold)) ||
            (region_hits(&b->region, reader, &index) && operand == 1 - index));
}

/* What stands in the body for a value from outside: a copy of a constant, or a parameter. */
static Node *value_inside(Body *b, Node *def, const Node *reader, int operand)
{
    const bool constant = is_constant_inside(b, def, reader, operand);
    bool fresh;
    MapEntry *e = map_put_u64(constant ? &b->constants : &b->parameters, (uintptr_t)def, &fresh);
    if (!fresh)
        return e->value.p;
    if (constant)
        return e->value.p = build_typed(&b->inside, OP_const, def->attr, 0, NULL, def->type);
    GROW(b->gs->arena, b->operands, b->n_operands, b->cap_operands);
    b->operands[b->n_operands++] = def;
    return e->value.p = graph_input(b->graph, NULL, def->type);
}

static bool leaves(const Body *b, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user) || fusion_group_of(b->gs, u->user) != b->group)
            return true;
    return false;
}

static void adopt(Body *b, Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = in(n, i);
        if (def && def->graph != b->graph)
            node_set_in(n, i, value_inside(b, def, n, i));
    }
    node_adopt(n, b->graph, NULL);
}

/* Readers outside read the part that has the value now; the value's name goes with them. */
static void hand_over(const Body *b, Node *n, Node *part)
{
    part->name = n->name;
    n->name = NULL;
    for (Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->graph != b->graph)
            node_set_in(u->user, (int)(u - u->user->in), part);
    }
}

static Status make_node(FusionGroups *gs, const FusionGroup *group)
{
    Body b = { .gs = gs, .group = group, .graph = region_new(gs->graph) };
    Node *first = group->calls[0], *last = group->calls[group->n - 1];
    Build outside = { .graph = gs->graph, .before = last->next, .src = group->n == 1 ? first->src : 0 };
    outside.flags =
        (uint16_t)(group->n == 1 ? first->flags : NODE_OURS | (first->flags & (NODE_BACKWARD | NODE_UPDATE)));
    outside.label = group->n == 1 ? first->label : NULL;
    b.inside = build_at_end(b.graph);
    b.results = NEWS(gs->arena, Node *, group->n);
    map_open(&b.constants, gs->arena);
    map_open(&b.parameters, gs->arena);
    for (size_t i = 0; i < group->n; i++)
        if (leaves(&b, group->calls[i]))
            b.results[b.n_results++] = group->calls[i];
    if (!b.n_results)
        return OK;
    fusion_group_region(gs, group, &b.region);
    for (size_t i = 0; i < group->n; i++)
        adopt(&b, group->calls[i]);
    graph_return(b.graph, b.n_results, b.results, NULL);
    Node *fused = build_with_regions(&outside, OP_fused, NULL, (int)b.n_operands, b.operands, b.n_results, 1, &b.graph);
    for (int i = 0; fused && i < b.n_results; i++)
        hand_over(&b, b.results[i], build_part(&outside, fused, i));
    return outside.status;
}

/* Constants first, so that what is moved behind them may read them wherever it stands. */
static void put_in_order(Node **calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        node_move(calls[i], NULL);
}

static Status fuse_in(Graph *g, PassRun *run)
{
    FusionGroups gs;
    size_t n;
    fusion_groups_find(&gs, g, run->scratch, run->diag);
    Node **calls = fusion_groups_order(&gs, &n);
    put_in_order(calls, n);
    for (size_t i = 0; i < n; i++) {
        const FusionGroup *group = fusion_group_of(&gs, calls[i]);
        if (!group->fusible || group->calls[0] != calls[i])
            continue;
        TRY(make_node(&gs, group));
        run->changes++;
    }
    return OK;
}

/* The bodies of control stay as they are: whoever runs such a call runs its body, call by call. */
static Status grow_fusion(Graph *g, PassRun *run)
{
    return fuse_in(g, run);
}

const Pass pass_grow_fusion = { .name = "grow-fusion", .needs = TYPED, .may = EXACT, .run = grow_fusion };
