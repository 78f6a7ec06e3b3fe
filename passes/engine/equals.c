#include "passes/engine/equals.h"

#include "base/hash.h"

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

/* Who an operand is. */
static const Node *stands_for(Equals *e, const Node *n)
{
    const Node *first = n && e->across_sides ? *(Node **)fact(&e->same, n) : NULL;
    return first ? first : n;
}

/* Operand i in an order that does not depend on how the call was written. */
static const Node *operand(Equals *e, const Node *n, int i)
{
    if (swaps(n) && stands_for(e, in(n, 0))->id > stands_for(e, in(n, 1))->id)
        i = 1 - i;
    return stands_for(e, in(n, i));
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

/* The marks that tell calls apart: not who placed them. */
static uint32_t marks(const Equals *e, const Node *n)
{
    return e->across_sides ? 0 : n->flags & ~(uint32_t)NODE_OURS;
}

static uint64_t hash_of(Equals *e, const Node *n)
{
    uint64_t h = hash_word(n->op, (uint64_t)(uintptr_t)n->type);
    h = hash_word(h, (uint64_t)(uintptr_t)n->graph ^ marks(e, n));
    h = n->op == OP_const ? constant_hash(n, h) : hash_word(h, attrs_hash(op_of(n)->attrs, n->attr));
    for (int i = 0; i < n->n_in; i++)
        h = hash_word(h, operand(e, n, i) ? operand(e, n, i)->id + 1 : 0);
    return h;
}

static bool equal(Equals *e, const Node *a, const Node *b)
{
    if (a->op != b->op || a->type != b->type || a->graph != b->graph || a->n_in != b->n_in)
        return false;
    if (marks(e, a) != marks(e, b))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (operand(e, a, i) != operand(e, b, i))
            return false;
    return attrs_equal(op_of(a)->attrs, a->attr, b->attr);
}

void equals_open(Equals *e, Arena *arena, bool across_sides)
{
    *e = (Equals){ .arena = arena, .across_sides = across_sides };
    map_open(&e->seen, arena);
    e->same = facts_open(arena, sizeof(Node *));
}

Node *equals_find(Equals *e, Node *n)
{
    if (!may_merge(n))
        return NULL;
    MapEntry *entry = map_put_u64(&e->seen, hash_of(e, n), NULL);
    for (const Seen *s = entry->value.p; s; s = s->next)
        if (equal(e, s->node, n)) {
            if (e->across_sides)
                *(Node **)fact(&e->same, n) = s->node;
            return s->node;
        }
    Seen *fresh = NEW(e->arena, Seen);
    *fresh = (Seen){ n, entry->value.p };
    entry->value.p = fresh;
    return NULL;
}
