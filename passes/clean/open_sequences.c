/* open-sequences: a sequence whose items are known where they are read is not built: its readers read the items.
 *
 *     graph @f(%x: f32[2,6]) -> (%y) {
 *         const %three: i64[] = 3
 *         const %first: i64[] = 0
 *         const %last: i64[] = -1
 *         %s: seq(f32[2,3]) = split_to_sequence(%x, %three, axis=1)
 *         %a: f32[2,3] = sequence_at(%s, %first)
 *         %b: f32[2,3] = sequence_at(%s, %last)
 *         %y: f32[2,3] = mul(%a, %b)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,6]) -> (%y) {
 *         const %0: i64[2] = [3, 3]
 *         %1: (f32[2,3], f32[2,3]) = split(%x, %0, axis=1)
 *         %a: f32[2,3] = part(%1, index=0)
 *         %b: f32[2,3] = part(%1, index=1)
 *         %y: f32[2,3] = mul(%a, %b)
 *     }
 *
 * A sequence has no gradient, its items have.  Exporters write every split and chunk as a sequence that is read at
 * constant positions.  Sequences that are constructed, split, inserted into, erased from and mapped over are followed;
 * what reads at a position that only the run tells still reads the sequence. */
#include "ir/copy.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "passes/engine/pass.h"

enum { MOST_ITEMS = 4096, MOST_BYTES = MOST_ITEMS * sizeof(int64_t) };

/* The items of a sequence. */
typedef struct Items {
    int n;
    Node **item; /* null: part of `split`, built when it is read */
    Node *split;
    Node *parts;     /* the call that gives the parts */
    Node *lengths;   /* of the parts, null: 1 each and the axis goes */
    int64_t *length; /* the same where they are known */
} Items;

typedef struct Opener {
    Graph *graph;
    PassRun *run;
    Arena *scratch;
    Facts items; /* of a sequence: Items *, null while they are not known */
    Node **old;  /* what has become superfluous, if nobody reads it */
    size_t n_old, cap_old;
    size_t opened;
    Build b;
} Opener;

static Items *items_of(Opener *o, const Node *s)
{
    return s ? *(Items **)fact(&o->items, s) : NULL;
}

static Items *know(Opener *o, Node *s, int64_t n)
{
    Items *k = NEW(o->scratch, Items);
    *k = (Items){ .n = (int)n, .item = NEWS(o->scratch, Node *, n + 1) };
    *(Items **)fact(&o->items, s) = k;
    GROW(o->scratch, o->old, o->n_old, o->cap_old);
    o->old[o->n_old++] = s;
    return k;
}

/* Integers that are stated, in the graph or as initializer: the exporter's positions and lengths. */
static const Tensor *stated(const Node *n)
{
    const bool is = n && (n->op == OP_const || n->op == OP_param) && n->type->kind == TYPE_TENSOR &&
                    dtype_is_integer(n->type->dtype) && node_payload(n);
    return is ? node_constant(n, MOST_BYTES) : NULL;
}

/* The position that operand i states, of n or, with `end`, of one more; where it is absent the last one of these. */
static bool position(const Node *call, int i, int64_t n, bool end, int64_t *at)
{
    const Tensor *t = stated(in(call, i));
    *at = end ? n : n - 1;
    if (!in(call, i))
        return *at >= 0;
    if (!t || tensor_elements(t) != 1)
        return false;
    const int64_t v = tensor_get_i64(t, 0);
    if (end && v == n)
        return true;
    *at = v;
    return index_wrap(at, n);
}

/* From now on readers of a value read `by`, which may be known better. */
static void open_value(Opener *o, Node *n, Node *by)
{
    if (!by || !type_agrees(by->type, n->type))
        return;
    by->type = type_meet(&o->graph->ir->types, by->type, n->type);
    stand_in(n, by);
    GROW(o->scratch, o->old, o->n_old, o->cap_old);
    o->old[o->n_old++] = n;
    o->opened++;
}

/* ---- the parts of a split ---- */

static int axis_of_split(const Node *split)
{
    return axis_wrap(((const SplitItemsAttr *)split->attr)->axis, in(split, 0)->type->rank);
}

static void list_lengths(Items *k, Opener *o, const Tensor *given, int64_t extent)
{
    const bool listed = given && given->type->rank > 0;
    k->length = NEWS(o->scratch, int64_t, k->n + 1);
    for (int i = 0; i < k->n; i++) {
        const int64_t each = given ? tensor_get_i64(given, listed ? i : 0) : 1;
        k->length[i] = listed || each < extent - i * each ? each : extent - i * each;
    }
}

/* How many parts there are follows from a list of lengths, or from the extent and the length of each. */
static void follow_split(Opener *o, Node *n)
{
    const Node *x = in(n, 0), *by = in(n, 1);
    const Tensor *given = stated(by);
    if (x->type->kind != TYPE_TENSOR || x->type->rank < 1 || (by && by->type->rank < 0))
        return;
    const bool listed = by && by->type->rank == 1;
    const int64_t extent = x->type->dims[axis_of_split(n)];
    const int64_t each = !by ? 1 : given && !listed ? tensor_get_i64(given, 0) : 0;
    const int64_t count = listed                    ? by->type->dims[0]
                          : each > 0 && extent >= 0 ? extent / each + (extent % each != 0)
                                                    : DIM_UNKNOWN;
    if (count < 0 || count > MOST_ITEMS)
        return;
    Items *k = know(o, n, count);
    k->split = n;
    k->lengths = in(n, 1);
    if (given || !listed)
        list_lengths(k, o, given, extent);
}

/* Whether only one item is read, all told. */
static bool reads_one(const Items *k)
{
    int64_t first = -1, at;
    for (const Use *u = k->split->uses; u; u = u->next) {
        if (u->user->op != OP_sequence_at || !position(u->user, 1, k->n, false, &at) || (first >= 0 && first != at))
            return false;
        first = at;
    }
    return true;
}

static bool drops_axis(const Items *k)
{
    return !k->lengths && !((const SplitItemsAttr *)k->split->attr)->keepdims;
}

/* One item alone is cut out; of several the call is a split, whose gradient puts them together again. */
static Node *cut(Build *b, const Items *k, int i)
{
    int64_t from = 0;
    Node *x = in(k->split, 0);
    const int axis = axis_of_split(k->split);
    for (int p = 0; p < i; p++)
        from += k->length[p];
    if (drops_axis(k))
        return make_gather(b, x, build_scalar(b, I64, i), axis);
    return make_slice(b, x, axis, from, from + k->length[i], 1);
}

static Node *part(Opener *o, Items *k, int i)
{
    Build b = build_before(k->split);
    const int64_t axis = axis_of_split(k->split);
    const bool alone = k->length && !k->parts && (k->n == 1 || reads_one(k));
    if (!alone && !k->parts) {
        Node *lengths = k->length ? build_i64s(&b, k->n, k->length) : build_cast(&b, k->lengths, I64);
        k->parts = make_split(&b, in(k->split, 0), (int)axis, lengths, k->n);
    }
    Node *y = alone ? cut(&b, k, i) : build_part(&b, k->parts, i);
    if (!alone && drops_axis(k))
        y = CALL(&b, squeeze, y, build_i64s(&b, 1, &axis));
    if (b.status != OK)
        o->b.status = b.status;
    return y;
}

static Node *item(Opener *o, Items *k, int64_t i)
{
    if (!k->item[i])
        k->item[i] = part(o, k, (int)i);
    return k->item[i];
}

/* Null after a failure. */
static Node **all_items(Opener *o, Items *k)
{
    for (int i = 0; i < k->n; i++)
        if (!item(o, k, i))
            return NULL;
    return k->item;
}

/* ---- sequences made of others ---- */

static void follow_construct(Opener *o, Node *n)
{
    Items *k = know(o, n, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        k->item[i] = in(n, i);
}

static void follow_same(Opener *o, Node *n)
{
    Items *k = items_of(o, in(n, 0));
    if (!k)
        return;
    (void)know(o, n, 0);
    *(Items **)fact(&o->items, n) = k;
}

static void follow_insert(Opener *o, Node *n)
{
    Items *s = items_of(o, in(n, 0));
    int64_t at;
    if (!s || s->n >= MOST_ITEMS || !position(n, 2, s->n, true, &at) || !all_items(o, s))
        return;
    Items *k = know(o, n, s->n + 1);
    for (int i = 0; i < k->n; i++)
        k->item[i] = i == at ? in(n, 1) : s->item[i < at ? i : i - 1];
}

static void follow_erase(Opener *o, Node *n)
{
    Items *s = items_of(o, in(n, 0));
    int64_t at;
    if (!s || !position(n, 1, s->n, false, &at) || !all_items(o, s))
        return;
    Items *k = know(o, n, s->n - 1);
    for (int i = 0; i < k->n; i++)
        k->item[i] = s->item[i < at ? i : i + 1];
}

/* ---- what reads them ---- */

static void open_at(Opener *o, Node *n)
{
    Items *k = items_of(o, in(n, 0));
    int64_t at;
    if (k && position(n, 1, k->n, false, &at))
        open_value(o, n, item(o, k, at));
}

static void open_length(Opener *o, Node *n)
{
    const Items *k = items_of(o, in(n, 0));
    if (k)
        open_value(o, n, build_scalar(&o->b, I64, k->n));
}

static void open_concat(Opener *o, Node *n)
{
    const SequenceConcatAttr *at = n->attr;
    Items *k = items_of(o, in(n, 0));
    Node **items = k && k->n ? all_items(o, k) : NULL;
    if (!items || items[0]->type->rank < 0)
        return;
    const int64_t axis = axis_wrap(at->axis, items[0]->type->rank + at->new_axis);
    Node **parts = NEWS(o->scratch, Node *, k->n);
    for (int i = 0; i < k->n; i++)
        parts[i] = at->new_axis ? CALL(&o->b, unsqueeze, items[i], build_i64s(&o->b, 1, &axis)) : items[i];
    open_value(o, n, make_concat(&o->b, (int)axis, k->n, parts));
}

static const struct {
    Op op;
    void (*follow)(Opener *o, Node *n);
} followed[] = {
    { OP_split_to_sequence, follow_split },
    { OP_sequence_construct, follow_construct },
    { OP_sequence_empty, follow_construct },
    { OP_sequence_insert, follow_insert },
    { OP_sequence_erase, follow_erase },
    { OP_identity, follow_same },
    { OP_sequence_at, open_at },
    { OP_sequence_length, open_length },
    { OP_concat_from_sequence, open_concat },
};

/* ---- the pass ---- */

static void mark_gone(void *user, Node *n)
{
    *(bool *)fact(user, n) = true;
}

static void remove_old(Opener *o)
{
    Facts gone = facts_open(o->scratch, sizeof(bool));
    for (size_t i = o->n_old; i-- > 0;)
        if (!*(bool *)fact(&gone, o->old[i]) && !o->old[i]->uses)
            remove_unread(o->old[i], o->scratch, mark_gone, &gone);
}

static Status open_once(Graph *g, PassRun *run, size_t *opened)
{
    Opener o = { .graph = g, .run = run, .scratch = run->scratch };
    o.items = facts_open(run->scratch, sizeof(Items *));
    for (Node *n = walk_first(g), *next; n && o.b.status == OK; n = next) {
        next = walk_next(g, n);
        if (n->op == OP_identity && n->type->kind != TYPE_SEQ)
            continue;
        for (size_t i = 0; i < COUNT(followed); i++)
            if (followed[i].op == n->op) {
                o.b = build_before(n);
                followed[i].follow(&o, n);
            }
    }
    remove_old(&o);
    *opened = o.opened;
    return o.b.status;
}

extern const Pass pass_propagate_shapes;

/* What was split says more of its shape than a sequence can, and that may open the next one. */
static Status open_sequences(Graph *g, PassRun *run)
{
    size_t opened;
    do {
        TRY(open_once(g, run, &opened));
        run->changes += (int64_t)opened;
        if (opened)
            TRY(pass_propagate_shapes.run(g, run));
    } while (opened);
    return OK;
}

const Pass pass_open_sequences = { .name = "open-sequences", .needs = TYPED, .may = EXACT, .run = open_sequences };
