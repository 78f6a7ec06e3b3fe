#include "passes/clean/table_rows.h"

#include <inttypes.h>

#include "ops/card/attrs.h"
#include "ops/card/shapes.h"

enum { MOST_BYTES = 1 << 23 };

/* Ends beyond this are the exporters' "as far as it goes". */
#define OPEN_END INT32_MAX

static bool is_table(const Node *n)
{
    return n && (n->op == OP_param || n->op == OP_const) && n->type->kind == TYPE_TENSOR && n->type->rank > 0;
}

static const Tensor *numbers(const Node *n)
{
    const bool is = n && (n->op == OP_const || n->op == OP_param) && n->type->kind == TYPE_TENSOR &&
                    dtype_is_integer(n->type->dtype) && node_payload(n);
    return is ? node_constant(n, MOST_BYTES) : NULL;
}

static Status too_short(const Node *n, const char *what, int64_t row, const Node *table, int64_t rows)
{
    return fail_as(n->graph->ir->diag, USAGE, node_place(n),
                   "%s %" PRId64 " of %s, which has %" PRId64 " row%s: a dimension is bound to more", what, row,
                   table->name ? table->name : "a table", rows, rows == 1 ? "" : "s");
}

static Status check_gather(const Node *n)
{
    const Node *table = in(n, 0);
    const Tensor *at = numbers(in(n, 1));
    if (!at || !is_table(table))
        return OK;
    const int64_t rows = table->type->dims[axis_wrap(((const AxisAttr *)n->attr)->axis, table->type->rank)];
    int64_t last = 0;
    for (int64_t i = 0; i < tensor_elements(at); i++)
        last = tensor_get_i64(at, i) > last ? tensor_get_i64(at, i) : last;
    return rows >= 0 && last >= rows ? too_short(n, "reads row", last, table, rows) : OK;
}

/* An end that the file states may lie beyond the table; one that was computed from a size may not. */
static Status check_slice(const Node *n)
{
    const Node *table = in(n, 0), *end = in(n, 2);
    const Tensor *ends = end && end->op == OP_const ? numbers(end) : NULL, *axes = numbers(in(n, 3));
    if (!ends || !is_table(table) || (in(n, 3) && !axes))
        return OK;
    for (int64_t i = 0; i < tensor_elements(ends) && i < table->type->rank; i++) {
        const int axis = axis_wrap(axes ? tensor_get_i64(axes, i) : i, table->type->rank);
        const int64_t rows = table->type->dims[axis], last = tensor_get_i64(ends, i);
        if (rows > 1 && last > rows && last < OPEN_END)
            return too_short(n, "reads up to row", last - 1, table, rows);
    }
    return OK;
}

Tables tables_open(Graph *g, Arena *arena)
{
    Tables t = { NEW(arena, Map) };
    map_open(t.slices, arena);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const Node *end = n->op == OP_slice ? in(n, 2) : NULL;
        if (end && end->op != OP_const && end->op != OP_param)
            map_put_u64(t.slices, n->id, NULL);
    }
    return t;
}

Status tables_check(const Tables *t, const Node *n)
{
    if (n->op == OP_slice)
        return map_find_u64(t->slices, n->id) ? check_slice(n) : OK;
    return op_looks_up(op_of(n)) ? check_gather(n) : OK;
}
