/* What changed in the operators, version by version: one row a change.
 *
 * A call enters at the version its model imports and leaves at the newest; between, every row of its operator that is
 * newer than the call is applied, oldest first.  Changes that only admitted more types, or added an attribute whose
 * default is the old behaviour, have no row. */
#include "frontends/onnx/read/upgrade.h"

#include <inttypes.h>
#include <string.h>

static Status drop_consumed(Call *c)
{
    call_drop(c, "consumed_inputs");
    return OK;
}

static Status cast_by_number(Call *c)
{
    static const char *const names[] = {
        "UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
        "STRING",    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128",
    };
    const char *to = call_string(c, "to", "");
    for (size_t i = 0; i < COUNT(names); i++) {
        if (strcmp(names[i], to) == 0) {
            call_set_int(c, "to", (int64_t)i);
            return OK;
        }
    }
    return call_fail(c, "to is '%s', which is no element type", to);
}

static Status clip_operands(Call *c)
{
    const Node *x = call_in(c, 0);
    const CallAttr *low = call_attr(c, "min"), *high = call_attr(c, "max");
    if (!x || x->type->kind != TYPE_TENSOR)
        return call_fail(c, "clips a tensor");
    if (high)
        call_set_in(c, 2, upgrade_scalar(c, x->type->dtype, high->f));
    if (low)
        call_set_in(c, 1, upgrade_scalar(c, x->type->dtype, low->f));
    call_drop(c, "min");
    call_drop(c, "max");
    return OK;
}

/* A file in training form reads as the inference it will be exported to; training brings the behaviour back. */
static Status drop_is_test(Call *c)
{
    call_drop(c, "is_test");
    return OK;
}

static Status spatial_only(Call *c)
{
    if (call_int(c, "spatial", 1) != 1)
        return fail_as(call_ir(c)->diag, UNSUPPORTED, NOWHERE, "%s: spatial=0 (one mean per activation) was removed",
                       c->op);
    call_drop(c, "spatial");
    return OK;
}

/* The outputs mean and var meant training; the saved ones are gone. */
static Status batch_norm_training(Call *c)
{
    if (c->n_out > 1)
        call_set_int(c, "training_mode", 1);
    if (c->n_out > 3)
        c->n_out = 3;
    return OK;
}

static Status dropout_operands(Call *c)
{
    call_set_in(c, 1, upgrade_scalar(c, F32, call_float(c, "ratio", 0.5f)));
    call_drop(c, "ratio");
    return OK;
}

static Status drop_broadcast(Call *c)
{
    call_drop(c, "broadcast");
    return OK;
}

static Status p_as_integer(Call *c)
{
    const CallAttr *p = call_attr(c, "p");
    if (p && p->f != (float)(int64_t)p->f)
        return call_fail(c, "p is %g, not an integer", (double)p->f);
    if (p)
        call_set_int(c, "p", (int64_t)p->f);
    return OK;
}

static Status drop_output_sequence(Call *c)
{
    call_drop(c, "output_sequence");
    return OK;
}

static Status grid_modes(Call *c)
{
    const char *mode = call_string(c, "mode", "bilinear");
    call_set_string(c, "mode",
                    strcmp(mode, "bilinear") == 0  ? "linear"
                    : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                   : mode);
    return OK;
}

static Status selu_constants(Call *c)
{
    if (!call_attr(c, "alpha"))
        call_set_float(c, "alpha", 1.6732f);
    if (!call_attr(c, "gamma"))
        call_set_float(c, "gamma", 1.0507f);
    call_drop(c, "consumed_inputs");
    return OK;
}

static Status scatter_to_elements(Call *c)
{
    c->op = "ScatterElements";
    return OK;
}

static Status k_operand(Call *c)
{
    const int64_t k = call_int(c, "k", 0);
    call_set_in(c, 1, upgrade_ints(c, 1, &k));
    call_drop(c, "k");
    return OK;
}

static Status roi_pixels(Call *c)
{
    if (!call_attr(c, "coordinate_transformation_mode"))
        call_set_string(c, "coordinate_transformation_mode", "output_half_pixel");
    return OK;
}

static Status dft_axis(Call *c)
{
    call_set_in(c, 2, upgrade_scalar(c, I64, (double)call_int(c, "axis", 1)));
    call_drop(c, "axis");
    return OK;
}

/* clang-format off */
static const Upgrade rows[] = {
    { "Abs",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Add",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Add",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "And",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "BatchNormalization", 6,  drop_consumed,        "consumed_inputs dropped"            },
    { "BatchNormalization", 7,  drop_is_test,         "is_test dropped"                    },
    { "BatchNormalization", 9,  spatial_only,         "spatial dropped"                    },
    { "BatchNormalization", 14, batch_norm_training,  "training_mode; 5 outputs become 3"  },
    { "Cast",               6,  cast_by_number,       "to is a number"                     },
    { "Ceil",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Clip",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Clip",               11, clip_operands,        "bounds are operands"                },
    { "Concat",             4,  concat_axis,          "axis must be given (was 1)"         },
    { "DFT",                20, dft_axis,             "axis is an operand"                 },
    { "Div",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Div",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "Dropout",            6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Dropout",            7,  drop_is_test,         "is_test dropped"                    },
    { "Dropout",            12, dropout_operands,     "ratio is an operand"                },
    { "Elu",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Equal",              7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "Exp",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Floor",              6,  drop_consumed,        "consumed_inputs dropped"            },
    { "GRU",                7,  drop_output_sequence, "output_sequence dropped"            },
    { "Gemm",               7,  drop_broadcast,       "numpy broadcasting"                 },
    { "GlobalLpPool",       2,  p_as_integer,         "p is an integer"                    },
    { "Greater",            7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "GridSample",         20, grid_modes,           "bilinear is linear, bicubic cubic"  },
    { "GroupNormalization", 21, group_to_channel,     "scale and bias are per channel"     },
    { "HardSigmoid",        6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Hardmax",            13, softmax_of_matrix,    "along an axis, not of a matrix"     },
    { "InstanceNormalization", 6, drop_consumed,      "consumed_inputs dropped"            },
    { "LSTM",               7,  drop_output_sequence, "output_sequence dropped"            },
    { "LeakyRelu",          6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Less",               7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "Log",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "LogSoftmax",         13, softmax_of_matrix,    "along an axis, not of a matrix"     },
    { "LpPool",             2,  p_as_integer,         "p is an integer"                    },
    { "Max",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Mean",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Min",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Mul",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Mul",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "Neg",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Or",                 7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "PRelu",              6,  drop_consumed,        "consumed_inputs dropped"            },
    { "PRelu",              7,  slope_by_channel,     "slope broadcasts from the right"    },
    { "Pad",                2,  pads_renamed,         "paddings is called pads"            },
    { "Pad",                11, pad_operands,         "pads and value are operands"        },
    { "Pow",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "RNN",                7,  drop_output_sequence, "output_sequence dropped"            },
    { "Reciprocal",         6,  drop_consumed,        "consumed_inputs dropped"            },
    { "ReduceL1",           18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceL2",           18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceLogSum",       18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceLogSumExp",    18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceMax",          18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceMean",         18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceMin",          18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceProd",         18, axes_to_operand,      "axes is an operand"                 },
    { "ReduceSum",          13, axes_to_operand,      "axes is an operand"                 },
    { "ReduceSumSquare",    18, axes_to_operand,      "axes is an operand"                 },
    { "Relu",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Reshape",            5,  shape_operand,        "shape is an operand"                },
    { "Resize",             11, resize_roi,           "coordinates can be chosen"          },
    { "RoiAlign",           16, roi_pixels,           "half_pixel is the default"          },
    { "Scatter",            11, scatter_to_elements,  "called ScatterElements"             },
    { "Selu",               6,  selu_constants,       "more digits in the defaults"        },
    { "Sigmoid",            6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Slice",              10, slice_operands,       "starts, ends, axes are operands"    },
    { "Softmax",            13, softmax_of_matrix,    "along an axis, not of a matrix"     },
    { "Split",              13, split_operand,        "split is an operand"                },
    { "Split",              18, split_parts,          "num_outputs"                        },
    { "Sqrt",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Squeeze",            13, axes_to_operand,      "axes is an operand"                 },
    { "Sub",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Sub",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
    { "Sum",                6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Tanh",               6,  drop_consumed,        "consumed_inputs dropped"            },
    { "Tile",               6,  tile_repeats,         "repeats along every axis"           },
    { "TopK",               10, k_operand,            "k is an operand"                    },
    { "Unsqueeze",          13, axes_to_operand,      "axes is an operand"                 },
    { "Upsample",           7,  upsample_scales,      "scales along every axis"            },
    { "Upsample",           9,  upsample_operand,     "scales is an operand"               },
    { "Upsample",           10, upsample_to_resize,   "called Resize"                      },
    { "Xor",                7,  broadcast_by_axis,    "numpy broadcasting"                 },
};
/* clang-format on */

const Upgrade *upgrades(size_t *n)
{
    *n = COUNT(rows);
    return rows;
}

/* The oldest change that the call has not seen. */
static const Upgrade *next_change(const Call *c)
{
    const Upgrade *next = NULL;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].version > c->version && strcmp(rows[i].op, c->op) == 0 &&
            (!next || rows[i].version < next->version))
            next = &rows[i];
    return next;
}

Status upgrade(Call *c)
{
    const Upgrade *change;
    while (!c->domain[0] && !c->result && (change = next_change(c))) {
        TRY(change->apply(c));
        c->version = change->version;
    }
    return OK;
}
