#include "passes/lower/moves.h"

#include <string.h>

#include "ops/card/make.h"
#include "ops/move/transposed.h"

static bool is_sized(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && type_known(n->type);
}

bool moves_reshapes(const Node *n)
{
    const bool reshapes = n->op == OP_reshape || n->op == OP_flatten || n->op == OP_squeeze || n->op == OP_unsqueeze;
    return reshapes && is_sized(n) && is_sized(in(n, 0));
}

bool moves_transposes(const Node *n)
{
    return n->op == OP_transpose && is_sized(n) && is_sized(in(n, 0));
}

/* What lies where after pieces were cut or have changed places: piece i became `count[i]` pieces from piece `first[i]` on. */
static void follow(Moves *m, const int *first, const int *count, int n)
{
    int order[MAX_RANK], k = 0;
    for (int i = 0; i < m->n; i++)
        for (int part = 0; part < count[m->order[i]]; part++)
            order[k++] = first[m->order[i]] + part;
    memcpy(m->order, order, (size_t)k * sizeof *order);
    m->n = n;
}

/* A step up through a reshape: pieces are cut so that axes of what was reshaped are whole ones; false: they cannot be. */
static bool before_reshape(Moves *m, const Type *was)
{
    int64_t size[MAX_RANK], left = 1;
    int first[MAX_RANK], count[MAX_RANK], n = 0, axis = 0;
    for (int i = 0; i < m->n; i++) {
        int64_t piece = m->size[i];
        first[i] = n;
        for (count[i] = 0; piece > 1; count[i]++) {
            while (left == 1)
                left = was->dims[axis++];
            const int64_t cut = left < piece ? left : piece;
            if (n == MAX_RANK || left % cut != 0 || piece % cut != 0)
                return false;
            size[n++] = cut;
            left /= cut;
            piece /= cut;
        }
    }
    memcpy(m->size, size, (size_t)n * sizeof *size);
    follow(m, first, count, n);
    return true;
}

/* A step up through a transpose. */
static void before_transpose(Moves *m, const Node *turn)
{
    const int rank = turn->type->rank;
    int64_t size[MAX_RANK];
    int begin[MAX_RANK + 1], place[MAX_RANK], first[MAX_RANK], count[MAX_RANK], n = 0, piece = 0;
    bool same = true;
    for (int i = 0; i < rank; i++) { /* the pieces of each axis */
        begin[i] = piece;
        for (int64_t made = 1; made < turn->type->dims[i]; piece++)
            made *= m->size[piece];
        place[transpose_source(turn, i)] = i;
    }
    begin[rank] = piece;
    for (int axis = 0; axis < rank; axis++)
        for (int k = begin[place[axis]]; k < begin[place[axis] + 1]; k++) {
            same = same && k == n;
            size[n] = m->size[k];
            first[k] = n++;
            count[k] = 1;
        }
    memcpy(m->size, size, (size_t)n * sizeof *size);
    follow(m, first, count, n);
    m->transposes += !same;
}

Moves moves_of(Node *n)
{
    Moves m = { .base = n };
    if (!is_sized(n) || type_elements(n->type) == 0)
        return m;
    for (int i = 0; i < n->type->rank; i++)
        if (n->type->dims[i] != 1) {
            m.order[m.n] = m.n;
            m.size[m.n++] = n->type->dims[i];
        }
    for (;;) {
        Moves up = m;
        if (moves_transposes(m.base))
            before_transpose(&up, m.base);
        else if (!moves_reshapes(m.base) || !before_reshape(&up, in(m.base, 0)->type))
            return m;
        up.base = in(m.base, 0);
        m = up;
    }
}

/* Pieces that lie beside each other in the base and in the result are one. */
static Moves merged(const Moves *m)
{
    Moves r = *m;
    int place[MAX_RANK] = { 0 }, becomes[MAX_RANK];
    for (int i = 0; i < m->n; i++)
        place[m->order[i]] = i;
    r.n = 0;
    for (int k = 0; k < m->n; k++) {
        const bool goes_on = k > 0 && place[k] == place[k - 1] + 1;
        if (goes_on)
            r.size[r.n - 1] *= m->size[k];
        else
            r.size[r.n++] = m->size[k];
        becomes[k] = r.n - 1;
    }
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (n == 0 || r.order[n - 1] != becomes[m->order[i]])
            r.order[n++] = becomes[m->order[i]];
    return r;
}

/* The pieces as the axes of the result have them, where each is one of these: then no reshape is left behind the transpose. */
static Moves as_axes(const Moves *m, int rank, const int64_t *dims)
{
    Moves whole = merged(m), r = *m;
    int k = 0;
    if (rank > MAX_RANK)
        return whole;
    for (int i = 0; i < rank; i++) {
        int64_t made = 1;
        const int begin = k;
        while (k < m->n && made < dims[i])
            made *= m->size[m->order[k++]];
        bool beside = made == dims[i] && dims[i] != 1;
        for (int j = begin + 1; j < k; j++)
            beside = beside && m->order[j] == m->order[j - 1] + 1;
        if (!beside)
            return whole;
        r.order[i] = m->order[begin];
        r.size[m->order[begin]] = dims[i];
    }
    /* the first piece of each axis stands for it; they are numbered again, in the order of the base */
    bool taken[MAX_RANK] = { false };
    int number[MAX_RANK];
    r.n = 0;
    for (int i = 0; i < rank; i++)
        taken[r.order[i]] = true;
    for (int p = 0; p < m->n; p++)
        if (taken[p]) {
            r.size[r.n] = r.size[p];
            number[p] = r.n++;
        }
    for (int i = 0; i < rank; i++)
        r.order[i] = number[r.order[i]];
    return r;
}

Node *moves_make(Build *b, const Moves *m, int rank, const int64_t *dims)
{
    const Moves to = as_axes(m, rank, dims);
    int64_t order[MAX_RANK];
    bool same = true;
    for (int i = 0; i < to.n; i++) {
        order[i] = to.order[i];
        same = same && to.order[i] == i;
    }
    Node *x = m->base;
    if (!same) {
        x = make_shaped(b, x, to.n, to.size);
        x = x ? make_transpose(b, x, to.n, order) : NULL;
    }
    return x ? make_shaped(b, x, rank, dims) : NULL;
}
