/* Applies tables of rules: a queue of nodes, first in list order, then whatever a replacement may have made match. */
#include <string.h>

#include "passes/engine/pattern.h"

/* What the engine notes of a node. */
typedef struct Note {
    bool queued, gone;
} Note;

typedef struct Driver {
    const Rule *rules;
    size_t n_rules;
    PassRun *run;
    Facts notes;
    int *first, *next; /* rules by op of their root; -1 ends; first[n ops]: those given by word */
    size_t n_ops;
    int depth; /* of the deepest pattern */
    Node **queue;
    size_t head, tail, cap;
    Status status;
} Driver;

/* What rules lower, in this order.  Casts weigh nothing, nor do constants: their bytes count, but for casts of
 * constants.  Of two places for a cast that cost the same the one counts where fewer bytes are moved: narrow as early,
 * wide as late as possible. */
typedef struct Measure {
    int64_t weight, cast_bytes, nodes, bytes, casts;
} Measure;

static Note *note(Driver *d, const Node *n)
{
    return fact(&d->notes, n);
}

static void enqueue(Driver *d, Node *n)
{
    Note *k = note(d, n);
    if (k->queued || k->gone || node_is_input(n) || n->op == OP_state || node_is_return(n))
        return;
    k->queued = true;
    GROW(d->run->scratch, d->queue, d->tail, d->cap);
    d->queue[d->tail++] = n;
}

/* A node changed: so may what its readers match, as far up as patterns reach down. */
static void enqueue_readers(Driver *d, Node *n)
{
    Node *level[64];
    size_t from = 0, to = 0;
    level[to++] = n;
    enqueue(d, n);
    for (int up = 1; up < d->depth && from < to; up++) {
        for (const size_t end = to; from < end; from++)
            for (const Use *u = level[from]->uses; u; u = u->next) {
                enqueue(d, u->user);
                if (to < COUNT(level))
                    level[to++] = u->user;
            }
    }
}

/* ---- the measure ---- */

static int64_t bytes_of(const Node *n)
{
    int64_t sum = 0;
    for (int i = 0; i < type_results(n->type); i++) {
        size_t bytes;
        const Type *t = type_result(n->type, i);
        if (t->kind == TYPE_TENSOR && type_known(t) && type_bytes(t, &bytes) && bytes < INT64_MAX / 4)
            sum += (int64_t)bytes;
    }
    return sum;
}

static void measure_add(Measure *m, const Node *n, int sign)
{
    const OpDef *def = op_of(n);
    const int64_t bytes = bytes_of(n);
    const bool casts = n->op == OP_cast || n->op == OP_amp_cast;
    m->casts += sign * casts;
    if (casts && in(n, 0)->op == OP_const)
        return; /* it is folded */
    m->bytes += sign * bytes;
    if (casts) {
        m->cast_bytes += sign * bytes;
        return;
    }
    if (!def->structural)
        m->weight += sign * (def->weight ? def->weight : 1);
    m->nodes += sign * (n->op != OP_const);
}

static bool measure_falls(const Measure *m)
{
    const int64_t parts[] = { m->weight, m->cast_bytes, m->nodes, m->bytes, m->casts };
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i])
            return parts[i] < 0;
    return false;
}

/* Nodes that nobody reads once a root is gone, as far as the list reaches. */
typedef struct Dead {
    const Node *node[64];
    int n;
} Dead;

static bool is_dead(const Dead *d, const Node *n)
{
    for (int i = 0; i < d->n; i++)
        if (d->node[i] == n)
            return true;
    return false;
}

static bool dies(const Dead *d, const Node *n)
{
    if (node_is_input(n) || n->op == OP_state)
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (!is_dead(d, u->user))
            return false;
    return true;
}

/* The root and what only it kept alive; what the replacement is built from has other readers already. */
static void measure_gone(Measure *m, const Node *root, const Node *by)
{
    Dead d = { { root }, 1 };
    for (int i = 0; i < d.n; i++) {
        measure_add(m, d.node[i], -1);
        for (int k = 0; k < d.node[i]->n_in; k++) {
            const Node *operand = in(d.node[i], k);
            if (operand && operand != by && d.n < (int)COUNT(d.node) && !is_dead(&d, operand) && dies(&d, operand))
                d.node[d.n++] = operand;
        }
    }
}

/* ---- one application ---- */

static void hear_gone(void *user, Node *n)
{
    Driver *d = user;
    note(d, n)->gone = true;
    d->run->changes += d->rules == NULL; /* applications are counted, not nodes */
}

/* Takes back what a build left between `mark` and the root. */
static void discard(Driver *d, const Node *mark, Node *root)
{
    while (root->prev != mark) {
        Node *n = root->prev;
        note(d, n)->gone = true;
        node_remove(n);
    }
}

/* The replacement's type is the root's; a new node may be told what was known before. */
static bool fits(const Node *by, const Node *root, bool fresh)
{
    if (by->type == root->type)
        return true;
    return fresh && type_agrees(by->type, root->type) &&
           type_meet(&root->graph->ir->types, by->type, root->type) == root->type;
}

static bool is_fresh(const Node *by, const Node *mark, const Node *root)
{
    for (const Node *n = root->prev; n != mark; n = n->prev)
        if (n == by)
            return true;
    return false;
}

static bool lowers(const Match *m, const Node *mark, const Node *by)
{
    Measure change = { 0 };
    for (const Node *n = m->root->prev; n != mark; n = n->prev)
        measure_add(&change, n, 1);
    measure_gone(&change, m->root, by);
    return measure_falls(&change);
}

/* What may have become unread, or read once: the operands of the matched calls. */
static void enqueue_around(Driver *d, const Match *m, Node *by)
{
    enqueue_readers(d, by);
    for (int i = 0; i < by->n_in; i++)
        if (in(by, i))
            enqueue(d, in(by, i));
    for (int i = 0; i < MATCH_LEAVES; i++)
        if (m->x[i] && m->x[i]->uses && !m->x[i]->uses->next)
            enqueue_readers(d, m->x[i]);
    for (int i = 1; i < m->n_nodes; i++)
        if (!note(d, m->node[i])->gone && m->node[i]->uses && !m->node[i]->uses->next)
            enqueue_readers(d, m->node[i]);
}

static void commit(Driver *d, const Rule *r, const Match *m, Node *by)
{
    PassRun *run = d->run;
    if (run->options->trace)
        remark(run->diag, "rules", node_place(m->root), "%s: %s", run->pass ? run->pass->name : "rules", r->name);
    stand_in(m->root, by);
    remove_unread(m->root, run->scratch, hear_gone, d);
    run->changes++;
    run->allowed -= run->allowed > 0;
    if (run->applied)
        run->applied[r - d->rules]++;
    enqueue_around(d, m, by);
}

static bool apply(Driver *d, const Rule *r, Match *m)
{
    Node *root = m->root, *mark = root->prev;
    Build b = build_before(root);
    Node *by = r->build ? r->build(&b, m) : pattern_build(r->become, &b, m);
    if (b.status != OK) {
        d->status = fail_as(d->run->diag, INTERNAL, node_place(root), "rule %s builds an illegal call", r->name);
        return false;
    }
    const bool fresh = by && is_fresh(by, mark, root);
    if (!by || by == root || !fits(by, root, fresh) || !lowers(m, mark, by)) {
        discard(d, mark, root);
        return false;
    }
    by->type = root->type;
    for (Node *n = root->prev; n != mark; n = n->prev)
        enqueue(d, n);
    commit(d, r, m, by);
    return true;
}

/* ---- which rules ---- */

/* What an ELASTIC rule may touch: a root that is ours, and no cast that is not. */
static bool casts_are_ours(const Match *m)
{
    for (int i = 0; i < m->n_nodes; i++) {
        const Node *n = m->node[i];
        if (!(n->flags & NODE_OURS) && (n == m->root || n->op == OP_cast || n->op == OP_amp_cast))
            return false;
    }
    return true;
}

static bool allowed(const Driver *d, const Rule *r, const Match *m)
{
    if (r->exactness == ELASTIC && (d->run->options->exact_casts || !casts_are_ours(m)))
        return false;
    return !r->when || r->when(m);
}

static bool try_list(Driver *d, Node *n, int rule)
{
    Match m;
    for (; rule >= 0; rule = d->next[rule]) {
        const Rule *r = &d->rules[rule];
        if (pattern_match(r->match, n, &m) && allowed(d, r, &m) && apply(d, r, &m))
            return true;
        if (d->status != OK)
            return false;
    }
    return false;
}

static const Pattern *root_call(const Rule *r)
{
    const Pattern *p = r->match;
    while (p->kind == PATTERN_WITH || p->kind == PATTERN_ONCE)
        p = p->in[0];
    DEBUG_IF(p->kind != PATTERN_OP);
    return p;
}

/* Chains rules by the op of their root, in the table's order; those of any op come behind those of one. */
static void index_rules(Driver *d)
{
    const size_t n_lists = d->n_ops + 1;
    d->first = NEWS(d->run->scratch, int, n_lists);
    d->next = NEWS(d->run->scratch, int, d->n_rules + 1);
    for (size_t i = 0; i < n_lists; i++)
        d->first[i] = -1;
    for (size_t i = d->n_rules; i-- > 0;) {
        const Pattern *p = root_call(&d->rules[i]);
        const size_t list = p->word || p->fits ? d->n_ops : p->op;
        const int depth = pattern_depth(d->rules[i].match);
        DEBUG_IF(list >= n_lists);
        d->next[i] = d->first[list];
        d->first[list] = (int)i;
        d->depth = depth > d->depth ? depth : d->depth;
    }
}

static void drain(Driver *d)
{
    while (d->head < d->tail && d->status == OK && d->run->allowed != 0) {
        Node *n = d->queue[d->head++];
        note(d, n)->queued = false;
        if (note(d, n)->gone)
            continue;
        if (!try_list(d, n, d->first[n->op]) && d->status == OK)
            try_list(d, n, d->first[d->n_ops]);
    }
}

Status rules_run(const Rule *rules, size_t n, Graph *g, PassRun *run)
{
    Driver d = { .rules = rules, .n_rules = n, .run = run, .n_ops = g->ir->ops->n };
    d.notes = facts_open(run->scratch, sizeof(Note));
    index_rules(&d);
    for (Node *node = walk_first(g); node; node = walk_next(g, node))
        enqueue(&d, node);
    drain(&d);
    return d.status;
}
