/* C-6: when a rounding that we placed may go.  The narrow copy of a value may have other readers, and they keep the
 * rounding: then nobody may decide by the value, and nobody may read it on another side of the step. */
#include "passes/amp/cast_rules.h"

/* Whether a reader decides by the value: its result is no float, or its class wants every bit. */
static bool decides(const Node *n)
{
    const AmpCard *card = &op_of(n)->amp;
    if (node_is_return(n))
        return false;
    if (n->n_regions)
        return true;
    const AmpClass class = card->f16 == AMP_C && card->when ? card->when(n, F16) : card->f16;
    if (class == AMP_N)
        return false;
    for (int i = 0; i < type_results(n->type); i++) {
        const Type *t = type_result(n->type, i);
        if (t->kind == TYPE_TENSOR && !dtype_is_float(t->dtype))
            return true;
    }
    return class == AMP_FI;
}

static bool reads_through(const Node *n)
{
    return n->op == OP_amp_cast && is_wide(n);
}

typedef struct View {
    bool decided, other_side;
} View;

static void look(View *v, const Node *reader, int side)
{
    v->decided |= decides(reader);
    v->other_side |= !node_is_return(reader) && side_of(reader) != side;
}

/* Who reads the narrow copy, but for the root, directly or widened again. */
static int look_beside(View *v, const Node *copy, const Node *root)
{
    int others = 0;
    for (const Use *u = copy->uses; u; u = u->next) {
        if (u->user == root)
            continue;
        others++;
        look(v, u->user, side_of(root));
        for (const Use *w = reads_through(u->user) ? u->user->uses : NULL; w; w = w->next)
            look(v, w->user, side_of(root));
    }
    return others;
}

bool one_view_remains(const Match *m)
{
    const Node *root = m->root, *copy = m->node[1], *x = m->x[0];
    View v = { false, false };
    if (!is_wide(root) || !is_narrow(copy) || !is_wide(x) || side_of(root) != side_of(x))
        return false;
    if (!look_beside(&v, copy, root))
        return true;
    for (const Use *u = root->uses; u; u = u->next)
        look(&v, u->user, side_of(root));
    return !v.decided && !v.other_side;
}
