#include "ops/card/access.h"

#include <string.h>

static bool is_known(const Type *t)
{
    return t->kind == TYPE_TENSOR && type_known(t);
}

const Type *access_result(const Node *n, int result)
{
    return type_result(n->type, result);
}

bool iteration_open(Iteration *it, const Node *n, Arena *arena, int rank, const int64_t *extent)
{
    *it = (Iteration){
        .rank = rank, .n_in = n->n_in, .n_out = type_results(n->type), .fill_by = NO_OPERAND, .begins = NO_OPERAND
    };
    if (rank < 0 || rank > MAX_RANK)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !is_known(in(n, i)->type))
            return false;
    for (int i = 0; i < it->n_out; i++)
        if (!is_known(access_result(n, i)))
            return false;
    if (rank)
        memcpy(it->extent, extent, (size_t)rank * sizeof *extent);
    it->in = NEWS(arena, Access, it->n_in + 1);
    it->out = NEWS(arena, Access, it->n_out + 1);
    return true;
}

int iteration_axis(Iteration *it, int64_t extent)
{
    it->extent[it->rank] = extent;
    return it->rank++;
}

int iteration_fold(Iteration *it, int64_t extent)
{
    it->folded[it->n_folded++] = it->rank;
    return iteration_axis(it, extent);
}

Access *reach_affine(const Iteration *it, Arena *arena, Access *a, int rank)
{
    *a = (Access){ .reach = REACH_AFFINE,
                   .rank = rank,
                   .base = NEWS(arena, int64_t, rank + 1),
                   .step = NEWS(arena, int64_t, rank * it->rank + 1),
                   .piece_dim = NO_PIECE };
    return a;
}

void reach_along(const Iteration *it, Access *a, int d, int axis, int64_t step)
{
    a->step[d * it->rank + axis] = step;
}

Access *reach_axes(const Iteration *it, Arena *arena, Access *a, int rank, int first)
{
    reach_affine(it, arena, a, rank);
    for (int d = 0; d < rank; d++)
        reach_along(it, a, d, first + d, 1);
    return a;
}

Access *reach_broadcast(const Iteration *it, Arena *arena, Access *a, const Type *t, int end)
{
    reach_affine(it, arena, a, t->rank);
    for (int d = 0; d < t->rank; d++)
        reach_along(it, a, d, end - t->rank + d, t->dims[d] != 1);
    return a;
}

Access *reach_beside(const Node *n, Arena *arena, Access *a, const Type *t, int end)
{
    const int rank = access_result(n, 0)->rank;
    *a = (Access){ .reach = REACH_BESIDE,
                   .rank = t->rank,
                   .base = NEWS(arena, int64_t, t->rank + 1),
                   .step = NEWS(arena, int64_t, t->rank * rank + 1),
                   .piece_dim = NO_PIECE };
    for (int d = 0; d < t->rank; d++)
        a->step[d * rank + end - t->rank + d] = t->dims[d] != 1;
    return a;
}

void reach_rest(const Node *n, Iteration *to)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && to->in[i].reach == REACH_TYPE)
            to->in[i] = (Access){ .reach = REACH_WHOLE, .piece_dim = NO_PIECE };
}

bool iterate_row(const Node *n, Arena *arena, Iteration *to)
{
    const Type *y = access_result(n, 0);
    if (!is_known(y) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !op_steers(op_of(n), i) && in(n, i)->type->rank > y->rank)
            return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->type->rank <= y->rank && !op_reads_type(op_of(n), i))
            reach_broadcast(to, arena, &to->in[i], in(n, i)->type, y->rank);
    for (int i = 0; i < to->n_out; i++)
        reach_axes(to, arena, &to->out[i], y->rank, 0);
    return true;
}

bool iterate_flat(const Node *n, Arena *arena, Iteration *to)
{
    const Type *y = access_result(n, 0);
    if (!is_known(y) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    to->in[0] = (Access){ .reach = REACH_FLAT, .rank = in(n, 0)->type->rank, .piece_dim = NO_PIECE };
    reach_axes(to, arena, &to->out[0], y->rank, 0);
    return true;
}

const int64_t *access_ints(const Node *n, int operand, Arena *arena, int64_t *count)
{
    *count = 0;
    const Node *x = in(n, operand);
    const Tensor *t = x ? node_constant(x, 0) : NULL;
    if (!t || t->type->kind != TYPE_TENSOR || !dtype_is_integer(t->type->dtype))
        return NULL;
    *count = tensor_elements(t);
    int64_t *v = NEWS(arena, int64_t, *count + 1);
    for (int64_t i = 0; i < *count; i++)
        v[i] = tensor_get_i64(t, i);
    return v;
}

bool access_iterate(const Node *n, Arena *arena, Iteration *to)
{
    const AccessCard *card = &op_of(n)->access;
    if (card->iterate)
        return card->iterate(n, arena, to);
    if (card->kind == ACCESS_ROW)
        return iterate_row(n, arena, to);
    return card->kind != ACCESS_COMPOSITE && op_of(n)->expand && iterate_expansion(n, arena, to);
}

/* ---- aliases ---- */

static bool same_type(const Type *x, const Type *y)
{
    return type_same_shape(x, y) && is_known(x) && x->dtype == y->dtype;
}

AliasHow access_alias_said(const Node *n, int result, int operand)
{
    const AccessCard *card = &op_of(n)->access;
    for (size_t i = 0; i < COUNT(card->alias); i++) {
        const Alias *a = &card->alias[i];
        if (a->how && (a->result == result || a->result == ALIAS_EACH) &&
            (a->operand == operand || a->operand == ALIAS_EACH))
            return (AliasHow)a->how;
    }
    return ALIAS_NONE;
}

AliasHow access_alias(const Node *n, int result, int operand, Arena *scratch)
{
    const AccessCard *card = &op_of(n)->access;
    const Type *y = access_result(n, result);
    if (!in(n, operand) || in(n, operand)->type->kind != TYPE_TENSOR || y->kind != TYPE_TENSOR)
        return ALIAS_NONE;
    const Type *x = in(n, operand)->type;
    const AliasHow said = access_alias_said(n, result, operand);
    Iteration walk;
    if (said) {
        const bool fits =
            said == ALIAS_OVER ? same_type(x, y) && (!card->over || card->over(n)) : access_iterate(n, scratch, &walk);
        return fits ? said : ALIAS_NONE;
    }
    const bool row = card->kind == ACCESS_ROW && !card->iterate && type_results(n->type) == 1;
    return row && same_type(x, y) ? ALIAS_OVER : ALIAS_NONE;
}
