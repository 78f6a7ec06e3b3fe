/* merge-equals: computes once what is computed twice.
 *
 *     graph @f(%x: f32[2], %y: f32[2]) -> (%z) {
 *         %a: f32[2] = add(%x, %y)
 *         %b: f32[2] = add(%y, %x)
 *         %z: f32[2] = mul(%a, %b)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %y: f32[2]) -> (%z) {
 *         %a: f32[2] = add(%x, %y)
 *         %z: f32[2] = mul(%a, %a)
 *     }
 *
 * Calls that draw never merge, nor do params: each may be trained.  Marks are part of equality. */
#include "base/hash.h"
#include "passes/engine/pass.h"

typedef struct Seen {
    Node *node;
    struct Seen *next;
} Seen;

static bool may_merge(const Node *n)
{
    const OpDef *def = op_of(n);
    if (n->n_regions || def->mode != MODE_PURE || n->op == OP_param || node_is_opaque(n))
        return false;
    return true;
}

static bool swaps(const Node *n)
{
    return op_of(n)->commutative && n->n_in == 2 && in(n, 0) && in(n, 1);
}

/* Operand i in an order that does not depend on how the call was written. */
static const Node *operand(const Node *n, int i)
{
    if (swaps(n) && in(n, 0)->id > in(n, 1)->id)
        i = 1 - i;
    return in(n, i);
}

/* The first bytes of a constant tell most of them apart, and where one lies that was not read yet. */
static uint64_t constant_hash(const Node *n, uint64_t h)
{
    enum { MOST = 1 << 16 };
    const Payload *p = node_payload(n);
    const Tensor *t = p ? p->tensor : NULL;
    if (!p)
        return h;
    if (!t || !t->data)
        return hash_word(hash_word(h, p->where), p->length);
    return hash64(t->data, t->bytes < MOST ? t->bytes : MOST, h);
}

static uint64_t hash_of(const Node *n)
{
    uint64_t h = hash_word(n->op, (uint64_t)(uintptr_t)n->type);
    h = hash_word(h, (uint64_t)(uintptr_t)n->graph ^ n->flags);
    h = n->op == OP_const ? constant_hash(n, h) : hash_word(h, attrs_hash(op_of(n)->attrs, n->attr));
    for (int i = 0; i < n->n_in; i++)
        h = hash_word(h, operand(n, i) ? operand(n, i)->id + 1 : 0);
    return h;
}

static bool equal(const Node *a, const Node *b)
{
    if (a->op != b->op || a->type != b->type || a->graph != b->graph || a->flags != b->flags || a->n_in != b->n_in)
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (operand(a, i) != operand(b, i))
            return false;
    return attrs_equal(op_of(a)->attrs, a->attr, b->attr);
}

static Node *find(Map *seen, Node *n, Arena *scratch)
{
    MapEntry *e = map_put_u64(seen, hash_of(n), NULL);
    for (const Seen *s = e->value.p; s; s = s->next)
        if (equal(s->node, n))
            return s->node;
    Seen *fresh = NEW(scratch, Seen);
    *fresh = (Seen){ n, e->value.p };
    e->value.p = fresh;
    return NULL;
}

static Status merge_equals(Graph *g, PassRun *run)
{
    Map seen;
    map_open(&seen, run->scratch);
    for (Node *n = walk_first(g), *next; n; n = next) {
        Node *first = may_merge(n) ? find(&seen, n, run->scratch) : NULL;
        next = walk_next(g, n);
        if (!first)
            continue;
        stand_in(n, first);
        node_remove(n);
        run->changes++;
    }
    return OK;
}

const Pass pass_merge_equals = { .name = "merge-equals", .may = EXACT, .run = merge_equals };
