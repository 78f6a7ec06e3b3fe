/* Upgrades that turn attributes about shapes into operands, and old broadcasting into new. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/read/upgrade.h"

Node *upgrade_ints(const Call *c, int n, const int64_t *v)
{
    return build_i64s(c->build, n, v);
}

Node *upgrade_scalar(const Call *c, DType dtype, double value)
{
    return build_scalar(c->build, dtype, value);
}

Status upgrade_rank(const Call *c, int i, int *rank)
{
    const Node *x = call_in(c, i);
    if (!x || x->type->kind != TYPE_TENSOR || x->type->rank < 0)
        return call_fail(c, "the rank of operand %d must be known to read version %d", i, c->version);
    *rank = x->type->rank;
    return OK;
}

/* Another operator of the newest version, as part of an upgrade. */
static Node *built(const Call *c, const char *op_type, const char *attr_name, int64_t value, int n, Node *const *ins)
{
    Op op;
    Ir *ir = call_ir(c);
    if (!op_find_onnx(ir->ops, "", op_type, &op)) {
        c->build->status = fail_as(ir->diag, UNSUPPORTED, NOWHERE, "no operator %s", op_type);
        return NULL;
    }
    const OpDef *def = ir->ops->defs[op];
    void *attr = attrs_default(call_arena(c), def->attrs);
    const AttrSpec *spec = attr_name ? attr_find(def->attrs, str(attr_name)) : NULL;
    if (spec)
        *(int64_t *)attr_at(spec, attr) = value;
    return build_node(c->build, op, attr, n, ins);
}

/* `broadcast=1, axis=k` laid B along the axes k, k+1, ... of A: trailing axes of 1 say the same. */
Status broadcast_by_axis(Call *c)
{
    const bool broadcast = call_int(c, "broadcast", 0) != 0;
    const CallAttr *axis = call_attr(c, "axis");
    int a, b;
    if (broadcast && axis && call_in(c, 1)) {
        TRY(upgrade_rank(c, 0, &a));
        TRY(upgrade_rank(c, 1, &b));
        const int64_t at = axis->i < 0 ? axis->i + a : axis->i, behind = a - at - b;
        if (at < 0 || behind < 0)
            return call_fail(c, "axis %" PRId64 " leaves no room for %d dimensions in %d", axis->i, b, a);
        int64_t axes[MAX_RANK];
        for (int i = 0; i < behind; i++)
            axes[i] = b + i;
        if (behind)
            call_set_in(
                c, 1,
                built(c, "Unsqueeze", NULL, 0, 2, (Node *[]){ call_in(c, 1), upgrade_ints(c, (int)behind, axes) }));
    }
    call_drop(c, "axis");
    call_drop(c, "broadcast");
    return c->build->status;
}

/* A slope of one value a channel belonged to axis 1. */
Status slope_by_channel(Call *c)
{
    int x, s;
    TRY(upgrade_rank(c, 0, &x));
    TRY(upgrade_rank(c, 1, &s));
    if (s != 1 || x <= 2 || type_elements(call_in(c, 1)->type) == 1)
        return OK;
    int64_t axes[MAX_RANK];
    for (int i = 0; i < x - 2; i++)
        axes[i] = 1 + i;
    call_set_in(c, 1, built(c, "Unsqueeze", NULL, 0, 2, (Node *[]){ call_in(c, 1), upgrade_ints(c, x - 2, axes) }));
    return c->build->status;
}

/* Softmax, LogSoftmax and Hardmax flattened their operand into a matrix at `axis`. */
Status softmax_of_matrix(Call *c)
{
    int rank;
    const int64_t axis = call_int(c, "axis", 1);
    TRY(upgrade_rank(c, 0, &rank));
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at > rank)
        return call_fail(c, "axis %" PRId64 " is outside [%d, %d]", axis, -rank, rank);
    if (at == rank - 1) {
        call_set_int(c, "axis", -1);
        return OK;
    }
    Node *x = call_in(c, 0);
    Node *shape = built(c, "Shape", NULL, 0, 1, &x);
    Node *matrix = built(c, "Flatten", "axis", at, 1, &x);
    Node *y = built(c, c->op, "axis", -1, 1, &matrix);
    c->result = built(c, "Reshape", NULL, 0, 2, (Node *[]){ y, shape });
    return c->build->status;
}

Status axes_to_operand(Call *c)
{
    const Ints axes = call_ints(c, "axes");
    if (axes.v)
        call_set_in(c, 1, upgrade_ints(c, axes.n, axes.v));
    call_drop(c, "axes");
    return OK;
}

Status slice_operands(Call *c)
{
    const Ints starts = call_ints(c, "starts"), ends = call_ints(c, "ends"), axes = call_ints(c, "axes");
    call_set_in(c, 1, upgrade_ints(c, starts.n, starts.v));
    call_set_in(c, 2, upgrade_ints(c, ends.n, ends.v));
    if (axes.v)
        call_set_in(c, 3, upgrade_ints(c, axes.n, axes.v));
    call_drop(c, "starts");
    call_drop(c, "ends");
    call_drop(c, "axes");
    return OK;
}

Status split_operand(Call *c)
{
    const Ints split = call_ints(c, "split");
    if (split.v)
        call_set_in(c, 1, upgrade_ints(c, split.n, split.v));
    call_drop(c, "split");
    return OK;
}

/* Without sizes the parts were as many as the outputs. */
Status split_parts(Call *c)
{
    if (!call_in(c, 1))
        call_set_int(c, "num_outputs", c->n_out);
    return OK;
}

Status pads_renamed(Call *c)
{
    const Ints pads = call_ints(c, "paddings");
    if (pads.v)
        call_set_ints(c, "pads", pads.n, pads.v);
    call_drop(c, "paddings");
    return OK;
}

Status pad_operands(Call *c)
{
    const Ints pads = call_ints(c, "pads");
    const float value = call_float(c, "value", 0);
    const Node *x = call_in(c, 0);
    call_set_in(c, 1, upgrade_ints(c, pads.n, pads.v));
    if (x && x->type->kind == TYPE_TENSOR)
        call_set_in(c, 2, upgrade_scalar(c, x->type->dtype, value));
    call_drop(c, "pads");
    call_drop(c, "value");
    return OK;
}

Status shape_operand(Call *c)
{
    const Ints shape = call_ints(c, "shape");
    call_set_in(c, 1, upgrade_ints(c, shape.n, shape.v));
    call_drop(c, "shape");
    call_drop(c, "consumed_inputs");
    return OK;
}

/* Tile took how often and along which axis, as tensors. */
Status tile_repeats(Call *c)
{
    int rank;
    int64_t repeats[MAX_RANK];
    TRY(upgrade_rank(c, 0, &rank));
    const Tensor *tiles = call_in(c, 1) ? node_constant(call_in(c, 1), 64) : NULL;
    const Tensor *axis = call_in(c, 2) ? node_constant(call_in(c, 2), 64) : NULL;
    if (!tiles || !axis || tensor_elements(tiles) != 1 || tensor_elements(axis) != 1)
        return call_fail(c, "tiles and axis of version 1 must be constants");
    const double along = tensor_get_f64(axis, 0), times = tensor_get_f64(tiles, 0);
    if (!(along >= 0 && along < rank))
        return call_fail(c, "axis %g is outside [0, %d)", along, rank);
    if (!(times >= 0 && times <= (double)call_ir(c)->limits.dim))
        return call_fail(c, "cannot repeat %g times", times);
    for (int i = 0; i < rank; i++)
        repeats[i] = i == (int)along ? (int64_t)times : 1;
    c->n_in = 2;
    call_set_in(c, 1, upgrade_ints(c, rank, repeats));
    return OK;
}

Status concat_axis(Call *c)
{
    if (!call_attr(c, "axis"))
        call_set_int(c, "axis", 1);
    return OK;
}

Status upsample_scales(Call *c)
{
    const float h = call_float(c, "height_scale", 1), w = call_float(c, "width_scale", 1);
    float *v = NEWS(call_arena(c), float, 4);
    v[0] = v[1] = 1;
    v[2] = h;
    v[3] = w;
    call_drop(c, "height_scale");
    call_drop(c, "width_scale");
    call_set_float(c, "scales", 0);
    CallAttr *a = call_attr(c, "scales");
    a->type = ONNX_ATTR_FLOATS;
    a->floats = (Floats){ 4, v };
    return OK;
}

Status upsample_operand(Call *c)
{
    const CallAttr *a = call_attr(c, "scales");
    if (!a)
        return call_fail(c, "scales are missing");
    const int64_t n = a->floats.n;
    Tensor *t = tensor_new(call_arena(c), type_vector(&call_ir(c)->types, F32, n));
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(t, i, a->floats.v[i]);
    call_set_in(c, 1, build_const(c->build, t));
    call_drop(c, "scales");
    return OK;
}

Status upsample_to_resize(Call *c)
{
    c->op = "Resize";
    return OK;
}

/* Version 10 knew no regions of interest and no choice of coordinates. */
Status resize_roi(Call *c)
{
    Node *scales = call_in(c, 1);
    call_set_in(c, 2, scales);
    call_set_in(c, 1, NULL);
    call_set_string(c, "coordinate_transformation_mode", "asymmetric");
    call_set_string(c, "nearest_mode", "floor");
    return OK;
}

/* Scale and bias were one a group; now they are one a channel. */
Status group_to_channel(Call *c)
{
    const Node *x = call_in(c, 0);
    const int64_t groups = call_int(c, "num_groups", 0);
    if (!x || x->type->kind != TYPE_TENSOR || x->type->rank < 2 || x->type->dims[1] < 0)
        return call_fail(c, "the number of channels must be known to read version %d", c->version);
    if (groups < 1 || x->type->dims[1] % groups)
        return call_fail(c, "%" PRId64 " channels are not %" PRId64 " equal groups", x->type->dims[1], groups);
    const int64_t shape[2] = { groups, x->type->dims[1] / groups }, one = 1, all = -1;
    for (int i = 1; i <= 2; i++) {
        Node *column = built(c, "Unsqueeze", NULL, 0, 2, (Node *[]){ call_in(c, i), upgrade_ints(c, 1, &one) });
        Node *wide = built(c, "Expand", NULL, 0, 2, (Node *[]){ column, upgrade_ints(c, 2, shape) });
        call_set_in(c, i, built(c, "Reshape", NULL, 0, 2, (Node *[]){ wide, upgrade_ints(c, 1, &all) }));
    }
    return c->build->status;
}
