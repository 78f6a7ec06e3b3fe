/* The walk of a call, point by point, as ops/card/access.h says it, written down literally. */
#ifndef TESTS_SUPPORT_WALKS_H
#define TESTS_SUPPORT_WALKS_H

#include "ops/card/access.h"
#include "support/calls.h"

typedef struct Walk {
    const Node *call;
    Iteration it;
    int axis[SPACE_RANK]; /* in the order in which points come, the last one fastest */
    int64_t point[SPACE_RANK];
    bool ended;
} Walk;

static inline int64_t walk_points(const Walk *w)
{
    int64_t n = 1;
    for (int s = 0; s < w->it.rank; s++)
        n = n > 1 << 24 ? n : n * w->it.extent[s];
    return n;
}

static inline bool walk_is_folded(const Iteration *it, int axis)
{
    for (int i = 0; i < it->n_folded; i++)
        if (it->folded[i] == axis)
            return true;
    return false;
}

/* Begins at the first point: what is kept walks in order, and inside it what is folded, as the card lists it. */
static inline void walk_begin(Walk *w)
{
    int n = 0;
    memset(w->point, 0, sizeof w->point);
    for (int s = 0; s < w->it.rank; s++)
        if (!walk_is_folded(&w->it, s))
            w->axis[n++] = s;
    for (int i = 0; i < w->it.n_folded; i++)
        w->axis[n++] = w->it.folded[i];
    w->ended = walk_points(w) == 0;
}

static inline void walk_step(Walk *w)
{
    for (int i = w->it.rank - 1; i >= 0; i--) {
        const int s = w->axis[i];
        if (++w->point[s] < w->it.extent[s])
            return;
        w->point[s] = 0;
    }
    w->ended = true;
}

static inline bool walk_open(Walk *w, Context *c, const Node *call)
{
    w->call = call;
    if (!access_iterate(call, &c->arena, &w->it))
        return false;
    walk_begin(w);
    return true;
}

enum { WALK_FILL = -1, WALK_NOWHERE = -2 };

static inline int64_t walk_number(const Walk *w)
{
    int64_t number = 0;
    for (int s = 0; s < w->it.rank; s++)
        number = number * w->it.extent[s] + w->point[s];
    return number;
}

static inline void walk_affine(const Walk *w, const Access *a, int64_t *place)
{
    for (int d = 0; d < a->rank; d++) {
        place[d] = a->base[d];
        for (int s = 0; s < w->it.rank; s++)
            place[d] += a->step[d * w->it.rank + s] * w->point[s];
    }
}

/* Adds what another operand holds to some coordinates. */
static inline void walk_indexed(const Walk *w, const Access *a, const Type *t, int64_t *place)
{
    const Access *by = &w->it.in[a->by];
    const Tensor *indices = constant(in(w->call, a->by));
    int64_t at[MAX_RANK], from = 0;
    walk_affine(w, by, at);
    for (int d = 0; d < by->rank; d++)
        from = from * indices->type->dims[d] + at[d];
    for (int k = 0; k < a->by_n; k++) {
        const int64_t v = tensor_get_i64(indices, from + k);
        place[a->by_dim + k] += v < 0 ? v + t->dims[a->by_dim + k] : v;
    }
}

/* The number of the element of a tensor that an access leads to from here; or WALK_FILL, WALK_NOWHERE. */
static inline int64_t walk_place(const Walk *w, const Access *a, const Type *t)
{
    int64_t place[MAX_RANK], number = 0;
    const bool piece = a->piece_dim != NO_PIECE;
    if (piece && (w->point[a->piece_dim] < a->from || w->point[a->piece_dim] >= a->to))
        return WALK_NOWHERE;
    if (a->reach == REACH_FLAT)
        return walk_number(w);
    assert_int_equal(a->rank, t->rank);
    walk_affine(w, a, place);
    if (a->reach == REACH_INDEXED)
        walk_indexed(w, a, t, place);
    for (int d = 0; d < a->rank; d++) {
        if (place[d] < 0 || place[d] >= t->dims[d]) {
            require(a->guard == GUARD_FILL || a->guard == GUARD_SKIP, "%s reads outside of its operand\n",
                    op_of(w->call)->name);
            return a->guard == GUARD_FILL ? WALK_FILL : WALK_NOWHERE;
        }
        number = number * t->dims[d] + place[d];
    }
    return number;
}

static inline bool walk_has_place(const Access *a)
{
    return a->reach == REACH_AFFINE || a->reach == REACH_FLAT || a->reach == REACH_INDEXED;
}

static inline int64_t walk_in(const Walk *w, int i)
{
    return walk_place(w, &w->it.in[i], in(w->call, i)->type);
}

static inline int64_t walk_out(const Walk *w, int i)
{
    return walk_place(w, &w->it.out[i], access_result(w->call, i));
}

static inline const Tensor *walk_result(const Tensor *value, int i)
{
    return value->type->kind == TYPE_TENSOR ? value : value->items[i];
}

static inline bool is_numbers(const Tensor *t)
{
    return t && t->type->kind == TYPE_TENSOR && t->type->dtype != STRING;
}

#endif
