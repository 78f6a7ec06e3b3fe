#include "passes/model/modes.h"

#include "ops/norm/norm.h"
#include "ops/random/random_draws.h"
#include "passes/engine/results.h"
#include "passes/model/noise.h"

enum { SCALE = 1, BIAS, MEAN, VAR }; /* operands of a norm */
enum { RATIO = 1, TRAINING };        /* and of a dropout */

typedef struct Calls {
    Node **list;
    size_t n, cap;
} Calls;

/* What remembers running statistics, what is another in training without, and what may be the end of a dropout that was
 * taken apart. */
static bool is_norm(const OpDef *def)
{
    return def->statistics != 0;
}

static bool is_dropout(const OpDef *def)
{
    return def->mode == MODE_TRAINING && !def->statistics;
}

static bool is_product(const OpDef *def)
{
    return def->row && def->combine == COMBINE_PRODUCT;
}

/* The calls of such ops, before any of them is changed. */
static Calls calls_of(Graph *g, bool (*is)(const OpDef *def), Arena *scratch)
{
    Calls c = { 0 };
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (!is(op_of(n)))
            continue;
        GROW(scratch, c.list, c.n, c.cap);
        c.list[c.n++] = n;
    }
    return c;
}

/* The readers of result k of a call read `by` instead. */
static void replace_result(Node *old, int k, Node *by)
{
    if (old->type->kind != TYPE_TUPLE) {
        if (k == 0)
            stand_in(old, by);
        return;
    }
    for (Use *u = old->uses; u; u = u->next) {
        Node *part = u->user;
        if (part->op == OP_part && ((const PartAttr *)part->attr)->index == k && part->uses)
            stand_in(part, by);
    }
}

static void drop_call(PassRun *run, Node *old)
{
    for (Use *u = old->uses, *next; u; u = next) {
        next = u->next;
        if (!u->user->uses)
            node_remove(u->user);
    }
    if (!old->uses)
        node_remove(old);
    run->changes++;
}

/* ---- norms ---- */

static bool is_own_state(const Graph *g, const Node *n)
{
    return n && n->op == OP_state && n->name && n->graph == g && !(n->flags & NODE_TRAINED);
}

static Node *norm_again(Build *b, const Node *n, bool training, bool unbiased)
{
    BatchNormAttr at = *(const BatchNormAttr *)n->attr;
    Node *const ins[] = { in(n, 0), in(n, SCALE), in(n, BIAS), in(n, MEAN), in(n, VAR) };
    at.training_mode = training;
    at.unbiased = unbiased;
    return build_node_n(b, n->op, &at, COUNT(ins), ins, training ? BATCH_NORM_RESULTS : 1);
}

static Status train_norm(Graph *g, PassRun *run, Node *n, Results *next)
{
    Node *const stats[] = { in(n, MEAN), in(n, VAR) }, *fresh, *parts[3];
    if (!is_own_state(g, stats[0]) || !is_own_state(g, stats[1])) {
        if (!((const BatchNormAttr *)n->attr)->training_mode)
            remark(run->diag, "training", node_place(n),
                   "stays as in inference: its statistics are no state of its own");
        return OK;
    }
    Build b = build_before(n);
    fresh = norm_again(&b, n, true, run->options->recipe && run->options->recipe->torch_norms);
    for (int k = 0; k < 3; k++) {
        parts[k] = fresh ? build_part(&b, fresh, k) : NULL;
        TRY(b.status);
        replace_result(n, k, parts[k]);
    }
    drop_call(run, n);
    results_add(next, stats[0]->name, parts[1]);
    results_add(next, stats[1]->name, parts[2]);
    return OK;
}

static Status infer_norm(PassRun *run, Node *n)
{
    if (!((const BatchNormAttr *)n->attr)->training_mode)
        return OK;
    Build b = build_before(n);
    Node *y = norm_again(&b, n, false, false);
    TRY(b.status);
    replace_result(n, 0, y);
    replace_result(n, 1, in(n, MEAN));
    replace_result(n, 2, in(n, VAR));
    drop_call(run, n);
    return OK;
}

/* Results that the model has under these names already stay. */
static void add_results(Graph *g, const Results *next, Arena *scratch)
{
    Results all = results_of(g, scratch);
    for (size_t i = 0; i < next->n; i++)
        if (results_find(&all, next->name[i]) < 0)
            results_add(&all, next->name[i], next->node[i]);
    results_set(&all);
}

/* ---- dropouts ---- */

static bool is_true(const Node *n)
{
    const Tensor *t = n ? node_constant(n, 1) : NULL;
    return t && tensor_get_i64(t, 0);
}

static bool drops_nothing(const Node *n)
{
    enum { ONE_NUMBER = 8 };
    const Tensor *t = in(n, RATIO) ? node_constant(in(n, RATIO), ONE_NUMBER) : NULL;
    return t && tensor_get_f64(t, 0) == 0;
}

/* Streams that calls which draw have already: what has one of them draws the same numbers. */
static Map streams_of(Graph *g, Arena *scratch)
{
    Map used;
    map_open(&used, scratch);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const AttrSpec *spec = attr_find(op_of(n)->attrs, str("stream"));
        if (spec && !is_dropout(op_of(n)))
            map_put_u64(&used, *(const uint64_t *)attr_at(spec, n->attr), NULL);
    }
    return used;
}

/* A stream of its own for a dropout: those in the body of one function come with the same. */
static void own_stream(Graph *g, Node *n, Map *used)
{
    enum { FRESH = 1 << 28 }; /* beyond every node of a file */
    DropoutAttr at = *(const DropoutAttr *)n->attr;
    bool fresh;
    map_put_u64(used, (uint64_t)at.stream, &fresh);
    for (int64_t k = FRESH; !fresh; k++) {
        at.stream = k;
        map_put_u64(used, (uint64_t)k, &fresh);
    }
    n->attr = attrs_copy(g->arena, op_of(n)->attrs, &at);
}

static Status train_dropout(PassRun *run, Node *n)
{
    Node *mode = in(n, TRAINING);
    if (drops_nothing(n) || is_true(mode))
        return OK;
    if (mode && !node_constant(mode, 1)) {
        remark(run->diag, "training", node_place(n), "an input decides whether it is in training");
        return OK;
    }
    Build b = build_before(n);
    Tensor *t = tensor_new(n->graph->arena, type_scalar(&n->graph->ir->types, BOOL));
    tensor_set_i64(t, 0, 1);
    Node *yes = build_const(&b, t);
    TRY(b.status);
    node_set_ins(n, 3, (Node *[]){ in(n, 0), in(n, RATIO), yes });
    run->changes++;
    return OK;
}

static void infer_dropout(PassRun *run, Node *n)
{
    if (!is_true(in(n, TRAINING)))
        return;
    node_set_ins(n, in(n, RATIO) ? 2 : 1, (Node *[]){ in(n, 0), in(n, RATIO) });
    run->changes++;
}

/* A dropout that was taken apart. */
static void infer_noise(PassRun *run, Node *n)
{
    Node *x = noise_free(n);
    if (!x)
        return;
    stand_in(n, x);
    node_remove(n);
    run->changes++;
}

Status modes_train(Graph *g, PassRun *run, bool norms, bool dropouts)
{
    const Calls all_norms = calls_of(g, is_norm, run->scratch);
    const Calls all_dropouts = calls_of(g, is_dropout, run->scratch);
    Results next = { .g = g, .arena = run->scratch };
    for (size_t i = 0; norms && i < all_norms.n; i++)
        TRY(train_norm(g, run, all_norms.list[i], &next));
    Map streams = streams_of(g, run->scratch);
    for (size_t i = 0; dropouts && i < all_dropouts.n; i++) {
        own_stream(g, all_dropouts.list[i], &streams);
        TRY(train_dropout(run, all_dropouts.list[i]));
    }
    if (next.n)
        add_results(g, &next, run->scratch);
    return OK;
}

Status modes_infer(Graph *g, PassRun *run, bool norms, bool dropouts)
{
    const Calls all_norms = calls_of(g, is_norm, run->scratch);
    const Calls all_dropouts = calls_of(g, is_dropout, run->scratch);
    const Calls all_products = calls_of(g, is_product, run->scratch);
    for (size_t i = 0; norms && i < all_norms.n; i++)
        TRY(infer_norm(run, all_norms.list[i]));
    for (size_t i = 0; dropouts && i < all_dropouts.n; i++)
        infer_dropout(run, all_dropouts.list[i]);
    for (size_t i = 0; dropouts && i < all_products.n; i++)
        infer_noise(run, all_products.list[i]);
    return OK;
}
