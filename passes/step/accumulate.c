/* accumulate: forward and backward run for one micro-batch after the other, and their gradients add up.
 *
 *     # recipe: --accumulate 2
 *     graph @f(%x: f32[3,4], state %w: f32[4] trained) -> (%loss, %grad.w = %d) {
 *         %y: f32[3] = matmul(%x, %w)
 *         %loss: f32[] = reduce_mean(%y, keepdims=false)
 *         const %seed: f32[] = 0.5 ours side=backward
 *         %d: f32[4] = mul(%w, %seed) ours side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[6,4], state %w: f32[4] trained) -> (%loss = %19, %grad.w = %20 role=gradient of=%w) {
 *         const %0: i64[] = 2 ours side=backward
 *         const %1: f32[] = 0 ours side=backward
 *         const %2: f32[] = 0 ours side=backward
 *         const %3: i64[1] = [4] ours side=backward
 *         %4: f32[4] = expand(%2, %3) ours side=backward
 *         const %5: i64[3] = [2, 3, 4] ours side=backward
 *         %6: f32[2,3,4] = reshape(%x, %5, allowzero=true) ours side=backward
 *         %7: (f32[], f32[4]) = loop(%0, _, %1, %4, %6, %w, operands=4) { (%8: i64[], %9: bool[], %10: f32[], %11: f32[4], %12: f32[2,3,4], %13: f32[4]) -> (%9, %15, %16)
 *             %14: f32[3,4] = gather(%12, %8) ours
 *             %y: f32[3] = matmul(%14, %13)
 *             %loss: f32[] = reduce_mean(%y, keepdims=false)
 *             const %seed: f32[] = 0.5 ours side=backward
 *             %d: f32[4] = mul(%13, %seed) ours side=backward
 *             %15: f32[] = add(%10, %loss) ours side=backward
 *             %16: f32[4] = add(%11, %d) ours side=backward
 *         } ours side=backward
 *         %17: f32[] = part(%7, index=0) ours side=backward
 *         const %18: f32[] = 2 ours side=backward
 *         %19: f32[] = div(%17, %18) ours side=backward
 *         %20: f32[4] = part(%7, index=1) ours side=backward
 *     }
 *
 * Inputs that carry the batch get the rows of all micro-batches; turn i of a loop reads part i.  The loop carries the
 * f32 sums of gradients and of scalars, which leave as means (scale-loss divided the seed of the gradients by the number
 * of turns), and the states that the forward side writes, such as running statistics.  Results that carry the batch
 * leave with all rows, others as the last turn left them; the latched scale stays outside. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/control/control.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"

enum {
    HEAD = 2,   /* iteration and condition of the body, number of turns and condition of the loop */
    WIDTHS = 3, /* that a body may read of one weight */
};

/* How a result leaves the loop. */
typedef enum Way {
    WAY_SUM,   /* a gradient: carried, from zero */
    WAY_MEAN,  /* a float scalar: the same, divided at the end */
    WAY_STATE, /* a state: carried, from its value */
    WAY_LAST,  /* carried, from zero, overwritten */
    WAY_STACK, /* a slice of every turn */
} Way;

typedef struct Leaving {
    Way way;
    Node *value;  /* in the body */
    Node *state;  /* of WAY_STATE: outside */
    Node *inside; /* its parameter of the body; null: WAY_STACK */
    int place;    /* among the results of the loop */
} Leaving;

typedef struct Accumulating {
    Graph *g, *body;
    const Recipe *recipe;
    int64_t turns, batch;
    Results results;
    Leaving *leaving;
    Node **operands; /* of the loop */
    int n_operands, n_carried;
    Build out, start, end; /* outside, at the start and at the end of the body */
    Node *iteration, *goes_on;
    Node *latched; /* the scale of all turns; null: none */
} Accumulating;

/* ---- what carries the batch ---- */

static bool is_whole(const Recipe *r, const Node *input)
{
    for (size_t i = 0; i < r->n_whole; i++)
        if (input->name && strcmp(r->whole[i], input->name) == 0)
            return true;
    return !node_is_input(input) || input->type->kind != TYPE_TENSOR || input->type->rank < 1;
}

static bool starts_with_batch(const Accumulating *a, const Type *t)
{
    return t->rank >= 1 && t->dims[0] == a->batch;
}

static bool is_cut(const Accumulating *a, const Node *input)
{
    return !is_whole(a->recipe, input) && starts_with_batch(a, input->type);
}

/* Rows of the first input that has any. */
static int64_t find_batch(const Graph *g, const Recipe *r)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!is_whole(r, g->inputs[i]))
            return g->inputs[i]->type->dims[0];
    return DIM_UNKNOWN;
}

/* The type with the rows of all turns in dimension 0. */
static const Type *of_all_turns(const Accumulating *a, const Type *t)
{
    int64_t dims[MAX_RANK];
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[0] *= a->turns;
    return type_tensor(&a->g->ir->types, t->dtype, t->rank, dims);
}

/* ---- into the body ---- */

static Node *parameter(Accumulating *a, const Type *type, Node *operand)
{
    a->operands[a->n_operands++] = operand;
    return graph_input(a->body, NULL, type);
}

static void open_body(Accumulating *a)
{
    Types *types = &a->g->ir->types;
    a->body = region_new(a->g);
    graph_return(a->g, 0, NULL, NULL);
    for (Node *n = a->g->first, *next; n; n = next) {
        next = n->next;
        if (n != a->latched)
            node_adopt(n, a->body, NULL);
    }
    a->out = build_at_end(a->g);
    a->start = a->end = build_at_end(a->body);
    a->start.before = a->body->first;
    a->start.flags = NODE_OURS;
    a->out.flags = a->end.flags = NODE_OURS | NODE_BACKWARD;
    a->operands = NEWS(a->results.arena, Node *, HEAD + a->results.n + WIDTHS * a->g->n_inputs + 1);
    a->iteration = parameter(a, type_scalar(types, I64), build_scalar(&a->out, I64, (double)a->turns));
    a->goes_on = parameter(a, type_scalar(types, BOOL), NULL);
}

static Way way_of(const Accumulating *a, size_t i, Node **state)
{
    const Type *t = a->results.node[i]->type;
    const char *name = results_name(&a->results, i);
    Node *input = name ? results_input(&a->results, name) : NULL;
    *state = input && input->op == OP_state ? input : NULL;
    if (*state)
        return WAY_STATE;
    if (results_trained(&a->results, i))
        return WAY_SUM;
    if (t->rank == 0 && dtype_is_float(t->dtype))
        return WAY_MEAN;
    return starts_with_batch(a, t) ? WAY_STACK : WAY_LAST;
}

/* Zeros that are made when they are needed, not kept. */
static Node *zeros(Accumulating *a, const Type *t)
{
    Node *zero = make_zeros(&a->out, t->dtype, 0, NULL);
    return t->rank ? make_expand(&a->out, zero, t->rank, t->dims) : zero;
}

/* Parameters of the carried results, in their order. */
static void carry(Accumulating *a)
{
    a->leaving = NEWS(a->results.arena, Leaving, a->results.n + 1);
    for (size_t i = 0; i < a->results.n; i++) {
        Leaving *l = &a->leaving[i];
        const Type *t = a->results.node[i]->type;
        l->value = a->results.node[i];
        l->way = way_of(a, i, &l->state);
        if (l->way == WAY_STACK)
            continue;
        if (l->way == WAY_SUM || l->way == WAY_MEAN)
            t = type_with_dtype(&a->g->ir->types, t, make_width(t->dtype));
        l->place = a->n_carried++;
        l->inside = parameter(a, t, l->state ? l->state : zeros(a, t));
    }
    int place = a->n_carried;
    for (size_t i = 0; i < a->results.n; i++)
        if (a->leaving[i].way == WAY_STACK)
            a->leaving[i].place = place++;
}

/* In the body `inside` stands for an input. */
static void replace_input(Accumulating *a, Node *input, Node *inside)
{
    for (Use *u = input->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->graph != a->g)
            node_set_in(u->user, (int)(u - u->user->in), inside);
    }
    for (size_t i = 0; i < a->results.n; i++)
        if (a->leaving[i].value == input)
            a->leaving[i].value = inside;
}

static Node *carried_state(const Accumulating *a, const Node *state)
{
    for (size_t i = 0; i < a->results.n; i++)
        if (a->leaving[i].state == state)
            return a->leaving[i].inside;
    return NULL;
}

/* Turn i reads part i of the rows. */
static void cut(Accumulating *a, Node *input)
{
    const Type *t = input->type;
    int64_t dims[MAX_RANK + 1] = { a->turns };
    memcpy(dims + 1, t->dims, (size_t)t->rank * sizeof *dims);
    Node *parts = parameter(a, type_tensor(&a->g->ir->types, t->dtype, t->rank + 1, dims), NULL);
    const int slot = a->n_operands - 1;
    replace_input(a, input, make_gather(&a->start, parts, a->iteration, 0));
    input->type = of_all_turns(a, t);
    a->operands[slot] = make_reshape(&a->out, input, t->rank + 1, dims);
}

static Node *cast_in_body(const Node *input)
{
    for (const Use *u = input->uses; u; u = u->next)
        if (u->user->op == OP_amp_cast && u->user->graph != input->graph)
            return u->user;
    return NULL;
}

/* Every turn would cast a weight to the same value: once before them is enough. */
static void cast_outside(Accumulating *a, Node *input)
{
    Node *cast;
    while ((cast = cast_in_body(input))) {
        const DType to = cast->type->dtype;
        Node *once = build_amp_cast(&a->out, input, to), *inside = parameter(a, once->type, once);
        for (Use *u = input->uses, *next; u; u = next) {
            next = u->next;
            if (u->user->op != OP_amp_cast || u->user == once || u->user->type->dtype != to)
                continue;
            graph_replace(u->user, inside);
            if (a->start.before == u->user)
                a->start.before = u->user->next;
            node_remove(u->user);
        }
    }
}

static bool is_read_inside(const Accumulating *a, const Node *input)
{
    for (const Use *u = input->uses; u; u = u->next)
        if (u->user->graph != a->g)
            return true;
    for (size_t k = 0; k < a->results.n; k++)
        if (a->leaving[k].value == input)
            return true;
    return false;
}

/* What the body reads of the inputs: what the turn before left, some rows, or all of it. */
static void capture(Accumulating *a)
{
    for (size_t i = 0; i < a->g->n_inputs; i++) {
        Node *input = a->g->inputs[i], *carried = carried_state(a, input);
        if (a->latched && in(a->latched, 0) == input) /* the latch stays outside, and nobody else reads it */
            continue;
        if (!carried && !is_cut(a, input))
            cast_outside(a, input);
        const bool is_read = is_read_inside(a, input);
        if (is_read && carried)
            replace_input(a, input, carried);
        else if (is_read && is_cut(a, input))
            cut(a, input);
        else if (is_read)
            replace_input(a, input, parameter(a, input->type, input));
        else if (is_cut(a, input))
            input->type = of_all_turns(a, input->type);
    }
    if (a->latched && a->latched->uses)
        replace_input(a, a->latched, parameter(a, a->latched->type, a->latched));
}

/* ---- out of the body ---- */

static void close_body(Accumulating *a)
{
    const int n = (int)a->results.n + 1;
    Node **results = NEWS(a->results.arena, Node *, n);
    results[0] = a->goes_on;
    for (size_t i = 0; i < a->results.n; i++) {
        const Leaving *l = &a->leaving[i];
        Node *value = l->value;
        if (l->way == WAY_SUM || l->way == WAY_MEAN)
            value = CALL(&a->end, add, l->inside, make_cast(&a->end, value, l->inside->type->dtype));
        results[1 + l->place] = value;
    }
    if (a->end.status == OK)
        graph_return(a->body, n, results, NULL);
}

static Node *leave(Accumulating *a, Node *loop, const Leaving *l)
{
    Node *y = build_part(&a->out, loop, l->place);
    if (a->out.status != OK)
        return NULL;
    if (l->way == WAY_MEAN)
        return CALL(&a->out, div, y, build_scalar(&a->out, y->type->dtype, (double)a->turns));
    if (l->way != WAY_STACK)
        return y;
    const Type *t = of_all_turns(a, l->value->type);
    return make_reshape(&a->out, y, t->rank, t->dims);
}

static void build_loop(Accumulating *a)
{
    const LoopAttr at = { HEAD + a->n_carried };
    Node *loop = build_with_regions(&a->out, OP_loop, &at, a->n_operands, a->operands, (int)a->results.n, 1, &a->body);
    for (size_t i = 0; i < a->results.n; i++) {
        a->results.name[i] = results_name(&a->results, i);
        a->results.node[i] = leave(a, loop, &a->leaving[i]);
    }
    if (a->latched)
        results_add_as(&a->results, NULL, a->latched, RESULT_latched, NULL);
    if (a->out.status == OK)
        results_set(&a->results);
}

/* ---- the pass ---- */

static Status check_inputs(const Graph *g, Diag *diag)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_given_gradient(g->inputs[i]))
            return fail_as(diag, UNSUPPORTED, NOWHERE,
                           "--accumulate cannot wait for gradients that the host gives (%s): run backward several "
                           "times before an update",
                           g->inputs[i]->name);
    return OK;
}

static Status accumulate(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    if (!recipe || recipe->accumulate <= 1)
        return OK;
    Accumulating a = { .g = g, .recipe = recipe, .turns = recipe->accumulate };
    a.results = results_of(g, run->scratch);
    a.latched = results_take(&a.results, RESULT_latched);
    a.batch = find_batch(g, recipe);
    for (size_t i = 0; i < a.results.n; i++)
        if (!a.results.node[i] || a.results.node[i]->type->kind != TYPE_TENSOR)
            return fail_as(run->diag, UNSUPPORTED, NOWHERE, "--accumulate adds up tensors: result %zu is none", i);
    TRY(check_inputs(g, run->diag));
    open_body(&a);
    carry(&a);
    capture(&a);
    close_body(&a);
    TRY(a.start.status);
    TRY(a.end.status);
    build_loop(&a);
    run->changes++;
    return a.out.status;
}

const Pass pass_accumulate = {
    .name = "accumulate", .needs = TYPED | SHAPED, .may = PRECISION, .rebinds = true, .run = accumulate
};
