#include "ops/card/schema.h"

#include <string.h>

/* The words of onnx_schema.def. */
enum {
    F32 = 1 << ONNX_FLOAT,
    U8 = 1 << ONNX_UINT8,
    I8 = 1 << ONNX_INT8,
    U16 = 1 << ONNX_UINT16,
    I16 = 1 << ONNX_INT16,
    I32 = 1 << ONNX_INT32,
    I64 = 1 << ONNX_INT64,
    STR = 1 << ONNX_STRING,
    BOOL = 1 << ONNX_BOOL,
    F16 = 1 << ONNX_FLOAT16,
    F64 = 1 << ONNX_DOUBLE,
    U32 = 1 << ONNX_UINT32,
    U64 = 1 << ONNX_UINT64,
    C64 = 1 << ONNX_COMPLEX64,
    C128 = 1 << ONNX_COMPLEX128,
    BF16 = 1 << ONNX_BFLOAT16,
    F8E4M3 = 1 << ONNX_FLOAT8E4M3FN,
    F8E4M3Z = 1 << ONNX_FLOAT8E4M3FNUZ,
    F8E5M2 = 1 << ONNX_FLOAT8E5M2,
    F8E5M2Z = 1 << ONNX_FLOAT8E5M2FNUZ,
    U4 = 1 << ONNX_UINT4,
    I4 = 1 << ONNX_INT4,
    F4E2M1 = 1 << ONNX_FLOAT4E2M1,
    F8E8M0 = 1 << ONNX_FLOAT8E8M0,
    U2 = 1 << ONNX_UINT2,
    I2 = 1 << ONNX_INT2,
    F6E2M3 = 1 << ONNX_FLOAT6E2M3,
    F6E3M2 = 1 << ONNX_FLOAT6E3M2,
    INTS = I8 | I16 | I32 | I64,
    UINTS = U8 | U16 | U32 | U64,
    FLOATS = F16 | F32 | F64,
    F8S = F8E4M3 | F8E4M3Z | F8E5M2 | F8E5M2Z,
    COMPLEX = C64 | C128,
    NIBBLES = U4 | I4,
    CRUMBS = U2 | I2,
};
enum {
    OPT = ONNX_PARAM_OPTIONAL,
    VAR = ONNX_PARAM_VARIADIC,
    HETERO = ONNX_PARAM_MIXED,
    DIFF = ONNX_PARAM_DIFFERENTIABLE,
};

/* clang-format off */
#define P(NAME, TYPES, FLAGS)     { NAME, TYPES, FLAGS }
#define T(VAR, ...)               { VAR, __VA_ARGS__ }
#define REQUIRED(NAME, TYPE)      { NAME, ONNX_ATTR_##TYPE, true, NULL, { 0 } }
#define OPTIONAL(NAME, TYPE)      { NAME, ONNX_ATTR_##TYPE, false, NULL, { 0 } }
#define DEFAULT(NAME, TYPE, S, V) { NAME, ONNX_ATTR_##TYPE, false, S, { V } }

#define COUNTED(FIELD, T0, ...)                                                                                        \
    .FIELD = (const T0[]){ __VA_ARGS__ }, .n_##FIELD = sizeof((const T0[]){ __VA_ARGS__ }) / sizeof(T0)
#define ATTRS(...)   COUNTED(attr, OnnxAttr, __VA_ARGS__)
#define INPUTS(...)  COUNTED(in, OnnxParam, __VA_ARGS__)
#define OUTPUTS(...) COUNTED(out, OnnxParam, __VA_ARGS__)
#define TYPES(...)   COUNTED(types, OnnxTypes, __VA_ARGS__)
#define NO_ATTRS     .n_attr = 0
#define NO_INPUTS    .n_in = 0
#define NO_OUTPUTS   .n_out = 0
#define NO_TYPES     .n_types = 0
#define ROW(DOMAIN, OP, SINCE, GONE, IN0, IN1, OUT0, OUT1, ...)                                                        \
    { .domain = DOMAIN, .op = OP, .since = SINCE, .deprecated = GONE,                                                  \
      .min_in = IN0, .max_in = IN1, .min_out = OUT0, .max_out = OUT1, __VA_ARGS__ },
/* clang-format on */

static const OnnxSchema rows[] = {
#include "ops/onnx_schema.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static int compare(const OnnxSchema *row, const char *domain, const char *op, int version)
{
    int order = strcmp(row->domain, domain);

    if (order == 0)
        order = strcmp(row->op, op);
    return order ? order : (row->since > version) - (row->since < version);
}

static bool same_op(const OnnxSchema *a, const OnnxSchema *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->op, b->op) == 0;
}

const OnnxSchema *schema_find(const char *domain, const char *op, int version)
{
    size_t low = 0, high = N_ROWS; /* rows below `low` are not newer than what is asked for, rows from `high` on are */

    if (*domain == '\0')
        domain = "ai.onnx";
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&rows[middle], domain, op, version) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || strcmp(rows[low - 1].domain, domain) != 0 || strcmp(rows[low - 1].op, op) != 0)
        return NULL;
    return &rows[low - 1];
}

static const OnnxBackdated backdated[] = {
    { "Attention", 25, "1.23", 28 },
};

const OnnxBackdated *schema_backdated(const OnnxSchema *row)
{
    for (size_t i = 0; i < sizeof backdated / sizeof *backdated; i++)
        if (backdated[i].since == row->since && strcmp(backdated[i].op, row->op) == 0 &&
            strcmp(row->domain, "ai.onnx") == 0)
            return &backdated[i];
    return NULL;
}

const OnnxSchema *schema_settled(const char *domain, const char *op, int version)
{
    const OnnxSchema *row = schema_find(domain, op, version);
    for (const OnnxBackdated *b; row && (b = schema_backdated(row)) && version < b->opset;)
        row = schema_find(domain, op, row->since - 1);
    return row;
}

const OnnxSchema *schema_all(size_t *n)
{
    *n = N_ROWS;
    return rows;
}

const OnnxSchema *schema_next(const OnnxSchema *row)
{
    return row + 1 < rows + N_ROWS && same_op(row, row + 1) ? row + 1 : NULL;
}

const OnnxAttr *schema_attr(const OnnxSchema *row, const char *name)
{
    for (int i = 0; i < row->n_attr; i++)
        if (strcmp(row->attr[i].name, name) == 0)
            return &row->attr[i];
    return NULL;
}

static const OnnxParam *formal(const OnnxParam *list, int n, int i)
{
    if (i < 0 || n == 0)
        return NULL;
    if (i < n)
        return &list[i];
    return list[n - 1].flags & ONNX_PARAM_VARIADIC ? &list[n - 1] : NULL;
}

const OnnxParam *schema_input(const OnnxSchema *row, int i)
{
    return formal(row->in, row->n_in, i);
}

const OnnxParam *schema_output(const OnnxSchema *row, int i)
{
    return formal(row->out, row->n_out, i);
}

const OnnxTypes *schema_types(const OnnxSchema *row, const char *var)
{
    for (int i = 0; i < row->n_types; i++)
        if (strcmp(row->types[i].var, var) == 0)
            return &row->types[i];
    return NULL;
}

uint32_t schema_tensor_mask(const OnnxSchema *row, const char *var)
{
    const OnnxTypes *types = schema_types(row, var);

    return types ? types->tensor : 0;
}

/* Slots are numbered inputs first, from 0; outputs from n_in on would shift between versions, so they count down. */
static int slot_of(const OnnxSchema *row, int types)
{
    for (int i = 0; i < row->n_in; i++)
        if (row->in[i].types == types)
            return i;
    for (int i = 0; i < row->n_out; i++)
        if (row->out[i].types == types)
            return ~i;
    return INT_MAX;
}

static bool slot_takes(const OnnxSchema *row, int slot, int dtype)
{
    const OnnxParam *p = slot >= 0 ? schema_input(row, slot) : schema_output(row, ~slot);

    return p && row->types[p->types].tensor >> dtype & 1;
}

int schema_type_since(const OnnxSchema *row, const char *var, int dtype)
{
    const OnnxTypes *types = schema_types(row, var);
    int since = 0;

    if (!types || dtype <= 0 || dtype >= ONNX_TYPES)
        return 0;
    int slot = slot_of(row, (int)(types - row->types));
    if (slot == INT_MAX) /* a constraint that no parameter uses has no history */
        return types->tensor >> dtype & 1 ? row->since : 0;
    for (; slot_takes(row, slot, dtype); row--) {
        since = row->since;
        if (row == rows || !same_op(row, row - 1))
            break;
    }
    return since;
}

int schema_type_ir(int dtype)
{
    static const uint8_t ir[ONNX_TYPES] = {
        [ONNX_FLOAT] = 1,        [ONNX_UINT8] = 1,          [ONNX_INT8] = 1,        [ONNX_UINT16] = 1,
        [ONNX_INT16] = 1,        [ONNX_INT32] = 1,          [ONNX_INT64] = 1,       [ONNX_STRING] = 1,
        [ONNX_BOOL] = 1,         [ONNX_FLOAT16] = 1,        [ONNX_DOUBLE] = 1,      [ONNX_UINT32] = 1,
        [ONNX_UINT64] = 1,       [ONNX_COMPLEX64] = 1,      [ONNX_COMPLEX128] = 1,  [ONNX_BFLOAT16] = 4,
        [ONNX_FLOAT8E4M3FN] = 9, [ONNX_FLOAT8E4M3FNUZ] = 9, [ONNX_FLOAT8E5M2] = 9,  [ONNX_FLOAT8E5M2FNUZ] = 9,
        [ONNX_UINT4] = 10,       [ONNX_INT4] = 10,          [ONNX_FLOAT4E2M1] = 11, [ONNX_FLOAT8E8M0] = 12,
        [ONNX_UINT2] = 13,       [ONNX_INT2] = 13,          [ONNX_FLOAT6E2M3] = 14, [ONNX_FLOAT6E3M2] = 14,
    };

    return dtype > 0 && dtype < ONNX_TYPES ? ir[dtype] : 0;
}
