/* Elements that go elsewhere. */
#include <inttypes.h>

#include "codegen/source/c_parts.h"
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"

/* Operands side by side along an axis: rows of each behind those of the other. */
Status c_print_concat(CSource *s, const Node *n)
{
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, n->type->rank);
    int64_t rows = 1, width = type_elements(n->type), at = 0;
    for (int i = 0; i < axis; i++)
        rows *= n->type->dims[i];
    width = rows ? width / rows : 0;
    for (int i = 0; i < n->n_in; i++) {
        const Node *x = in(n, i);
        const int64_t length = rows ? type_elements(x->type) / rows : 0;
        if (c_constant(s, x))
            return c_refuse(n, "it joins stored codes", NULL);
        if (dtype_bits(x->type->dtype) != 8)
            return c_refuse(n, "it joins what are no codes of 8 bits", NULL);
        const char *name = c_name(s, c_text_of(s, n));
        c_function(s, name, n, 1, &x, arena_printf(s->arena, "part %d of %d, %s", i + 1, n->n_in, c_shape(s, x->type)));
        c_loop(s, "r", rows);
        const char *row = rows == 1 ? "0" : "r";
        c_line(s, "memcpy(y + %s * %" PRId64 " + %" PRId64 ", x + %s * %" PRId64 ", %" PRId64 ");", row, width, at, row,
               length, length);
        c_close_to(s, 0);
        c_call(s, name, 2, (const Node *const[]){ x, n });
        at += length;
    }
    return OK;
}

/* Which element of the data each element of the result is: what the word itself makes of their numbers. */
static Status find_sources(CSource *s, const Node *word, int result, const int64_t **sources)
{
    const Type *x = type_with_dtype(&s->g->ir->types, in(word, 0)->type, I32);
    Tensor *numbers = tensor_new(s->arena, x);
    const Tensor *y = NULL, *ins[MAX_RANK] = { numbers };
    for (int64_t i = 0; i < type_elements(x); i++)
        tensor_set_i64(numbers, i, i);
    for (int i = 1; i < word->n_in && i < MAX_RANK; i++) {
        ins[i] = c_constant(s, in(word, i));
        if (in(word, i) && (!ins[i] || ins[i]->type->dtype == in(word, 0)->type->dtype))
            return c_refuse(word, "it moves more than one value", NULL);
    }
    TRY(c_evaluate(s, word, ins, &y));
    *sources = c_integers(s, y->type->kind == TYPE_TUPLE ? y->items[result] : y);
    return OK;
}

/* Steps through the data, one a dimension of the result; false: they differ within a dimension. */
static bool find_steps(const Type *y, const int64_t *sources, int64_t *steps)
{
    int64_t place[MAX_RANK] = { 0 };
    int64_t stride = 1;
    for (int d = y->rank - 1; d >= 0; d--) {
        steps[d] = y->dims[d] > 1 ? sources[stride] - sources[0] : 0;
        stride *= y->dims[d];
    }
    for (int64_t i = 0; i < stride; i++) {
        int64_t from = sources[0];
        for (int d = 0; d < y->rank; d++)
            from += place[d] * steps[d];
        if (from != sources[i])
            return false;
        for (int d = y->rank - 1; d >= 0 && ++place[d] == y->dims[d]; d--)
            place[d] = 0;
    }
    return true;
}

static void print_steps(CSource *s, const Type *y, const int64_t *steps, int64_t first)
{
    CAxis to[MAX_RANK];
    Text from;
    text_open(&from, s->arena);
    if (first)
        text_printf(&from, "%" PRId64, first);
    for (int d = 0; d < y->rank; d++) {
        to[d] = (CAxis){ c_places[d], y->dims[d] };
        c_loop(s, c_places[d], y->dims[d]);
        if (!steps[d])
            continue;
        const char *sign = steps[d] < 0 ? (from.n ? " - " : "-") : from.n ? " + " : "";
        const int64_t step = steps[d] < 0 ? -steps[d] : steps[d];
        text_printf(&from, step == 1 ? "%s%s" : "%s%s * %" PRId64, sign, c_places[d], step);
    }
    c_line(s, "y[%s] = x[%s];", c_index(s, y->rank, to), from.n ? text_get(&from) : "0");
}

Status c_print_move(CSource *s, const Node *n)
{
    const bool part = n->op == OP_part;
    const Node *word = part ? in(n, 0) : n, *x = in(word, 0);
    const int64_t count = type_elements(n->type), *sources = NULL;
    int64_t steps[MAX_RANK];
    if (!c_type(n->type->dtype) || n->type->dtype != x->type->dtype || dtype_bits(n->type->dtype) > 8)
        return c_refuse(n, "it moves what are no codes of 8 bits", NULL);
    TRY(find_sources(s, word, part ? (int)((const PartAttr *)n->attr)->index : 0, &sources));
    bool same = count == type_elements(x->type);
    for (int64_t i = 0; i < count && same; i++)
        same = sources[i] == i;
    if (same) {
        c_same(s, n, x);
        return OK;
    }
    const char *name = c_name(s, c_text_of(s, n));
    const bool regular = find_steps(n->type, sources, steps);
    const char *table = NULL;
    if (!regular) {
        table = c_name(s, arena_printf(s->arena, "%s_from", name));
        text_add(&s->code, "\n");
        c_table(s, table, c_smallest(count, sources), count, sources);
    }
    c_function(s, name, n, 1, &x,
               arena_printf(s->arena, "%s of %s to %s", op_of(word)->name, c_shape(s, x->type), c_shape(s, n->type)));
    if (regular)
        print_steps(s, n->type, steps, count ? sources[0] : 0);
    else {
        c_loop(s, "i", count);
        c_line(s, "y[%s] = x[%s[%s]];", count == 1 ? "0" : "i", table, count == 1 ? "0" : "i");
    }
    c_close_to(s, 0);
    c_call(s, name, 2, (const Node *const[]){ x, n });
    return OK;
}
