#include "ops/card/make.h"

#include <string.h>

#include "ops/card/attrs.h"

bool make_ready(Build *b, const Site *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] && !type_known(s->in[i]->type)) {
            b->status =
                fail_as(b->graph->ir->diag, UNSUPPORTED, node_place(s->in[i]),
                        "%s cannot be expanded before it is known", type_text(b->graph->ir->arena, s->in[i]->type));
            return false;
        }
    return b->status == OK;
}

bool make_extents(Build *b, const Site *s, int i)
{
    if (!type_known(s->in[i]->type) && b->status == OK)
        b->status = fail_as(b->graph->ir->diag, UNSUPPORTED, node_place(s->call),
                            "the gradient of %s asks for a shape that only the run tells: %s", op_of(s->call)->name,
                            type_text(b->graph->ir->diag->arena, s->in[i]->type));
    return b->status == OK;
}

const Tensor *make_known(Build *b, const Site *s, int i)
{
    if (!s->value[i] && b->status == OK)
        b->status = fail_as(b->graph->ir->diag, UNSUPPORTED, node_place(s->in[i]),
                            "is read by a call whose gradient needs it to be a constant");
    return s->value[i];
}

DType make_width(DType dtype)
{
    return dtype == F64 ? F64 : F32;
}

Node *make_cast(Build *b, Node *x, DType to)
{
    const bool ours = x && dtype_is_amp(x->type->dtype) && dtype_is_amp(to);
    return ours ? build_amp_cast(b, x, to) : build_cast(b, x, to);
}

/* The defaults of an op with one field found by its name. */
static void *attr_of(Build *b, Op op, const char *field, void **at)
{
    const AttrSpec *specs = b->graph->ir->ops->defs[op]->attrs, *spec = attr_find(specs, str(field));
    BUG_IF(b->graph->ir->memory, !spec);
    void *attr = attrs_default(b->graph->arena, specs);
    *at = attr_at(spec, attr);
    return attr;
}

static Node *with_int(Build *b, Op op, const char *field, int64_t v, int n_in, Node *const *ins)
{
    void *at, *attr = attr_of(b, op, field, &at);
    memcpy(at, &v, sizeof v);
    return build_node(b, op, attr, n_in, ins);
}

Node *make_reshape(Build *b, Node *x, int rank, const int64_t *dims)
{
    void *at, *attr = attr_of(b, OP_reshape, "allowzero", &at);
    *(bool *)at = true;
    return build_node(b, OP_reshape, attr, 2, (Node *[]){ x, build_i64s(b, rank, dims) });
}

Node *make_shaped(Build *b, Node *x, int rank, const int64_t *dims)
{
    bool same = x && x->type->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = x->type->dims[i] == dims[i];
    return same ? x : make_reshape(b, x, rank, dims);
}

Node *make_transpose(Build *b, Node *x, int rank, const int64_t *order)
{
    void *at, *attr = attr_of(b, OP_transpose, "perm", &at);
    *(Ints *)at = (Ints){ rank, order };
    return build_node(b, OP_transpose, attr, 1, &x);
}

Node *make_swap_last(Build *b, Node *x)
{
    int64_t order[MAX_RANK];
    const int rank = x ? x->type->rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return x ? make_transpose(b, x, rank, order) : NULL;
}

Node *make_lower(Build *b, Node *x, int64_t k)
{
    void *at, *attr = attr_of(b, OP_trilu, "upper", &at);
    *(bool *)at = false;
    return build_node(b, OP_trilu, attr, 2, (Node *[]){ x, build_scalar(b, I64, (double)k) });
}

Node *make_slice(Build *b, Node *x, int axis, int64_t from, int64_t to, int64_t step)
{
    const int64_t where = axis;
    return CALL(b, slice, x, build_i64s(b, 1, &from), build_i64s(b, 1, &to), build_i64s(b, 1, &where),
                build_i64s(b, 1, &step));
}

Node *make_concat(Build *b, int axis, int n, Node *const *parts)
{
    return with_int(b, OP_concat, "axis", axis, n, parts);
}

Node *make_split(Build *b, Node *x, int axis, Node *lengths, int n)
{
    void *at, *attr = attr_of(b, OP_split, "axis", &at);
    const int64_t v = axis;
    memcpy(at, &v, sizeof v);
    return build_node_n(b, OP_split, attr, 2, (Node *[]){ x, lengths }, n);
}

Node *make_pad(Build *b, Node *x, int rank, const int64_t *before, const int64_t *after)
{
    int64_t pads[2 * MAX_RANK];
    bool any = false;
    for (int i = 0; i < rank; i++) {
        pads[i] = before[i];
        pads[rank + i] = after[i];
        any |= before[i] || after[i];
    }
    return any ? CALL(b, pad, x, build_i64s(b, 2 * rank, pads)) : x;
}

Node *make_expand(Build *b, Node *x, int rank, const int64_t *dims)
{
    return CALL(b, expand, x, build_i64s(b, rank, dims));
}

Node *make_gather(Build *b, Node *x, Node *indices, int axis)
{
    return with_int(b, OP_gather, "axis", axis, 2, (Node *[]){ x, indices });
}

Node *make_gather_elements(Build *b, Node *x, Node *indices, int axis)
{
    return with_int(b, OP_gather_elements, "axis", axis, 2, (Node *[]){ x, indices });
}

Node *make_gather_back(Build *b, const Type *x, Node *indices, int axis, Node *dy)
{
    const ScatterAttr add = { .reduction = SCATTER_ADD };
    int64_t front[MAX_RANK], back[MAX_RANK], dims[MAX_RANK], last = -1;
    if (b->status != OK)
        return NULL;
    const int n = indices->type->rank, rank = dy->type->rank;
    for (int i = 0; i < rank; i++)
        front[i] = i < n ? axis + i : i < n + axis ? i - n : i;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i == 0 ? axis : i <= axis ? i - 1 : i];
        back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    }
    Node *zeros = make_expand(b, build_scalar(b, x->dtype, 0), x->rank, dims);
    Node *tuples = CALL(b, unsqueeze, indices, build_i64s(b, 1, &last));
    Node *sum = CALL_ATTR(b, scatter_nd, add, zeros, tuples, axis ? make_transpose(b, dy, rank, front) : dy);
    return axis ? make_transpose(b, sum, x->rank, back) : sum;
}

Node *make_softmax(Build *b, Node *x, int axis)
{
    return with_int(b, OP_softmax, "axis", axis, 1, &x);
}

Node *make_log_softmax(Build *b, Node *x, int axis)
{
    return with_int(b, OP_log_softmax, "axis", axis, 1, &x);
}

Node *make_reduce_all(Build *b, Op op, Node *x)
{
    const ReduceAttr attr = { .keepdims = false };
    return build_node(b, op, &attr, 1, &x);
}

Node *make_reduce_from(Build *b, Op op, Node *x, int first, int rank)
{
    int64_t axes[MAX_RANK];
    for (int i = first; i < rank; i++)
        axes[i - first] = i;
    return build_reduce(b, op, x, rank - first, axes);
}

Node *make_zero_like(Build *b, const Node *like)
{
    return build_scalar(b, like ? like->type->dtype : F32, 0);
}

Node *make_zeros(Build *b, DType dtype, int rank, const int64_t *dims)
{
    return build_const(b, tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, rank, dims)));
}

Node *make_filled(Build *b, DType dtype, double v, const Type *like)
{
    return make_expand(b, build_scalar(b, dtype, v), like->rank, like->dims);
}

Node *make_zeros_like(Build *b, Node *x)
{
    const DType dtype = make_width(x->type->dtype);
    return type_known(x->type) ? make_filled(b, dtype, 0, x->type)
                               : CALL(b, expand, build_scalar(b, dtype, 0), CALL(b, shape, x));
}

Node *make_count(Build *b, int rank, int axis, int64_t n)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? n : 1;
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, I64, rank, dims));
    for (int64_t i = 0; i < n; i++)
        tensor_set_i64(t, i, i);
    return build_const(b, t);
}

Node *make_channels(Build *b, Node *x, int64_t channels, int rank)
{
    int64_t dims[MAX_RANK] = { channels };
    for (int i = 1; i < rank - 1; i++)
        dims[i] = 1;
    return rank <= 2 ? x : make_reshape(b, x, rank - 1, dims);
}
