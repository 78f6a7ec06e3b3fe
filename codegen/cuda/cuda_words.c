/* How kernels spell values: elements in memory, constants, indices, and the steps that make registers. */
#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_parts.h"
#include "ops/card/reduction.h"
#include "ops/card/row.h"
#include "ops/fold/reduce_axes.h"
#include "ops/machine/space.h"

void cuda_indent(const CudaMaker *m, int indent)
{
    text_printf(m->out, "%*s", 4 * indent, "");
}

/* ---- elements in memory ---- */

/* Element types: how one lies by itself, and the function that widens a narrow float; null where the C type says it all. */
typedef struct Storage {
    const char *type, *format, *tail;
} Storage;

static const Storage storages[DTYPE_COUNT] = {
    [BOOL] = { "u8", NULL, NULL },
    [BIT] = { "u8", NULL, NULL },
    [I2] = { "i8", NULL, NULL },
    [U2] = { "u8", NULL, NULL },
    [I4] = { "i8", NULL, NULL },
    [U4] = { "u8", NULL, NULL },
    [I8] = { "i8", NULL, NULL },
    [U8] = { "u8", NULL, NULL },
    [I16] = { "i16", NULL, NULL },
    [U16] = { "u16", NULL, NULL },
    [I32] = { "i32", NULL, NULL },
    [U32] = { "u32", NULL, NULL },
    [I64] = { "i64", NULL, NULL },
    [U64] = { "u64", NULL, NULL },
    [F32] = { "f32", NULL, NULL },
    [F64] = { "f64", NULL, NULL },
    [F16] = { "u16", "f16", "" },
    [BF16] = { "u16", "bf16", "" },
    [F8E4M3] = { "u8", "f8e4m3fn", ", true" },
    [F8E4M3FNUZ] = { "u8", "f8e4m3fnuz", ", true" },
    [F8E5M2] = { "u8", "f8e5m2", ", true" },
    [F8E5M2FNUZ] = { "u8", "f8e5m2fnuz", ", true" },
    [F8E8M0] = { "u8", "e8m0", ", E8M0_UP, true" },
};

const char *cuda_storage(DType d)
{
    return storages[d].type;
}

bool cuda_packed(DType d)
{
    return storages[d].type && dtype_bits(d) < 8;
}

/* The low bits of an integer as an element that lies by itself. */
static const char *low_bits(Arena *arena, DType d, const char *value)
{
    const int mask = (1 << dtype_bits(d)) - 1, sign = 1 << (dtype_bits(d) - 1);
    if (dtype_class(d) == CLASS_INT)
        return arena_printf(arena, "(i8)(((i32)(%s & %d) ^ %d) - %d)", value, mask, sign, sign);
    return arena_printf(arena, "(u8)(%s & %d)", value, mask);
}

const char *cuda_element(Arena *arena, DType d, const char *array, const char *place)
{
    const int bits = dtype_bits(d), each = bits < 8 ? 8 / bits : 1;
    if (!cuda_packed(d))
        return arena_printf(arena, "%s[%s]", array, place);
    return low_bits(arena, d,
                    arena_printf(arena, "(%s[(%s) / %d] >> (%s) %% %d * %d)", array, place, each, place, each, bits));
}

const char *cuda_byte(Arena *arena, DType d, const char *array, const char *byte, int64_t n)
{
    const int bits = dtype_bits(d), each = 8 / bits;
    Text t;
    text_open(&t, arena);
    for (int k = 0; k < each; k++) {
        const char *place = arena_printf(arena, "%s * %d + %d", byte, each, k);
        const char *element = arena_printf(arena, "((u32)%s[%s] & %d) << %d", array, place, (1 << bits) - 1, k * bits);
        text_printf(&t, "%s%s", k ? " | " : "(u8)(", "");
        if (n % each && k)
            text_printf(&t, "(%s < %" PRId64 " ? %s : 0)", place, n, element);
        else
            text_printf(&t, "%s", element);
    }
    text_char(&t, ')');
    return text_get(&t);
}

const char *cuda_store(const CudaMaker *m, DType arithmetic, DType to, const char *value)
{
    const Storage *s = &storages[to];
    if (arithmetic == to)
        return value;
    if (to == BOOL || to == BIT)
        return arena_printf(m->arena, "(u8)(%s != 0)", value);
    if (cuda_packed(to)) { /* what is below its bits, with the sign that it has there */
        const char *whole = dtype_is_float(arithmetic) ? arena_printf(m->arena, "q_i64(%s)", value) : value;
        return low_bits(m->arena, to, whole);
    }
    if (to == I64 || to == U64)
        return arena_printf(m->arena, "q_%s(%s)", s->type, value);
    if (s->format) { /* integers are rounded to odd first, so that two roundings are one */
        const char *wide = dtype_is_float(arithmetic)
                               ? value
                               : arena_printf(m->arena, "f64_odd_from_%s(%s)", dtype_name(arithmetic), value);
        return arena_printf(m->arena, "%s_from_%s(%s%s)", s->format, arithmetic == F32 ? "f32" : "f64", wide, s->tail);
    }
    if (dtype_is_float(to) || !dtype_is_float(arithmetic))
        return arena_printf(m->arena, "(%s)%s", s->type, value);
    return arena_printf(m->arena, "(%s)q_i64(%s)", s->type, value);
}

const char *cuda_load(const CudaMaker *m, DType from, DType arithmetic, const char *value)
{
    const Storage *s = &storages[from];
    if (arithmetic == from)
        return value;
    if (from == BOOL || from == BIT)
        return arena_printf(m->arena, "(%s)(%s != 0)", dtype_name(arithmetic), value);
    if (!dtype_is_float(from))
        return arena_printf(m->arena, "(%s)%s", dtype_name(arithmetic), value);
    const char *wide = s->format ? arena_printf(m->arena, "%s_to_f32(%s)", s->format, value) : value;
    if (s->format && arithmetic == F32)
        return wide;
    return dtype_is_float(arithmetic) ? arena_printf(m->arena, "(%s)%s", dtype_name(arithmetic), wide)
                                      : arena_printf(m->arena, "q_%s(%s)", dtype_name(arithmetic), wide);
}

/* ---- constants: their bits ---- */

typedef union Number {
    f32 f;
    f64 d;
    i64 i;
    u64 u;
    u32 bits;
} Number;

static const char *number(const CudaMaker *m, DType arithmetic, Number v)
{
    if (arithmetic == F32)
        return arena_printf(m->arena, "float_of(0x%08" PRIx32 "u)", v.bits);
    if (arithmetic == F64)
        return arena_printf(m->arena, "half_f64(0x%016" PRIx64 "ul)", v.u);
    if (arithmetic == U64 || v.i == INT64_MIN)
        return arena_printf(m->arena, "(%s)%" PRIu64 "ul", dtype_name(arithmetic), v.u);
    return arena_printf(m->arena, "%" PRIi64 "l", v.i);
}

/* A constant that a tape fills a register with. */
static const char *filled(const CudaMaker *m, const TapeStep *s)
{
    Number v = { .u = 0 };
    if (s->value)
        kernels_load(kernels_best(), dtype_arithmetic(s->arithmetic), &v, s->value, 0, 1);
    else if (s->arithmetic == F32)
        v.f = (f32)s->k[0];
    else if (s->arithmetic == F64)
        v.d = s->k[0];
    else if (s->arithmetic == I64)
        v.i = q_i64(s->k[0]);
    else
        v.u = q_u64(s->k[0]);
    return number(m, s->arithmetic, v);
}

/* A scalar of a row, converted as its loop converts it. */
static const char *scalar(const CudaMaker *m, DType arithmetic, double k)
{
    Number v = { .u = 0 };
    if (arithmetic == F32)
        v.f = (f32)k;
    else if (arithmetic == F64)
        v.d = k;
    else if (arithmetic == I64)
        v.i = (i64)k;
    else
        v.u = (u64)k;
    return number(m, arithmetic, v);
}

/* ---- rows ---- */

static int operands_of(const TapeStep *s)
{
    int n = 0;
    while (n < TAPE_OPERANDS && s->in[n] != TAPE_NONE)
        n++;
    return n;
}

void cuda_row_function(const CudaMaker *m, const TapeStep *s)
{
    const OpDef *def = m->ops->defs[s->op];
    const char *type = dtype_name(s->arithmetic);
    text_printf(m->out, "Q_FN %s %s_%s_%s(", type, m->name, def->name, type);
    for (int i = 0; i < operands_of(s); i++)
        text_printf(m->out, "%s%s %c", i ? ", " : "", type, 'x' + i);
    if (def->attrs)
        text_printf(m->out, ", %s a, %s b", type, type);
    text_printf(m->out, ")\n{\n    typedef %s T;\n    return (T)(%s);\n}\n\n", type, def->row->text);
}

static void print_row(const CudaMaker *m, const TapeStep *s)
{
    const OpDef *def = m->ops->defs[s->op];
    text_printf(m->out, "%s_%s_%s(", m->name, def->name, dtype_name(s->arithmetic));
    for (int i = 0; i < operands_of(s); i++)
        text_printf(m->out, "%sr%d", i ? ", " : "", s->in[i]);
    for (int i = 0; def->attrs && i < TAPE_SCALARS; i++)
        text_printf(m->out, ", %s", scalar(m, s->arithmetic, s->k[i]));
    text_printf(m->out, ")");
}

/* ---- indices ---- */

/* Dimensions [from, to) of a value that lies at the right end of a space. */
static Type some_dims(const Type *t, int space_rank, int from, int to, int64_t *dims)
{
    for (int d = from; d < to; d++) {
        const int at = d - (space_rank - t->rank);
        dims[d - from] = at < 0 ? 1 : t->dims[at];
    }
    return (Type){ .kind = TYPE_TENSOR, .dtype = t->dtype, .rank = to - from, .dims = dims };
}

/* Adds what an index over dimensions [from, to) of the space contributes to the place of an operand's element, whose
 * elements there lie `step` apart; how many the operand has there. */
static int64_t add_terms(const CudaMaker *m, Text *sum, const Type *t, int from, int to, const char *index,
                         int64_t step)
{
    int64_t dims[MAX_RANK], space_dims[MAX_RANK], strides[1][MAX_RANK], below = 1;
    const Type operand = some_dims(t, m->tape->space->rank, from, to, dims);
    const Type whole = some_dims(m->tape->space, m->tape->space->rank, from, to, space_dims);
    const Type *operands[] = { &operand };
    Space s;
    space_open(&s, &whole, 1, operands, strides);
    for (int d = s.rank - 1; d >= 0; d--) {
        const int64_t stride = strides[0][d] * step;
        if (stride) {
            text_printf(sum, "%s%s", sum->n ? " + " : "", index);
            if (below > 1)
                text_printf(sum, " / %" PRId64, below);
            if (d > 0)
                text_printf(sum, " %% %" PRId64, s.dims[d]);
            if (stride > 1)
                text_printf(sum, " * %" PRId64, stride);
        }
        below *= s.dims[d];
    }
    return type_elements(&operand);
}

/* Where an element of an argument lies; of channels, what is before them counts runs, and what is behind is in one. */
static const char *place_of(const CudaMaker *m, const TapeStep *load, const CudaPlace *at)
{
    const Tape *t = m->tape;
    const Type *type = t->in[load->in[0]];
    const int cut = t->cut < 0 ? 0 : t->cut, rank = t->space->rank;
    const bool by_row = t->registers[load->out].per_row;
    Text sum;
    text_open(&sum, m->arena);
    if (type_elements(type) == 1)
        return "0";
    if (!by_row && at->element && type_elements(type) == t->rows * t->length)
        return at->element;
    const char *in_run = at->column, *run = at->column;
    if (tape_has_channels(t) && !by_row) {
        in_run = arena_printf(m->arena, "%s %% %" PRId64, at->column, tape_run_elements(t));
        run = arena_printf(m->arena, "%s / %" PRId64, at->column, tape_run_elements(t));
    }
    int64_t step = 1;
    if (!by_row)
        step = add_terms(m, &sum, type, cut, rank, in_run, 1);
    step *= add_terms(m, &sum, type, t->first, cut, at->row, step);
    if (!by_row)
        add_terms(m, &sum, type, 0, t->first, run, step);
    return sum.n ? text_get(&sum) : "0";
}

/* ---- draws ---- */

/* The number of an element, or of a row, by its logical index. */
static void print_draw(const CudaMaker *m, const TapeStep *s, const CudaPlace *at)
{
    const char *index = m->tape->registers[s->out].per_row ? at->row : at->element;
    const char *seed = s->own ? arena_printf(m->arena, "draws[0] ^ 0x%016" PRIx64 "ul", s->own) : "draws[0]";
    if (s->law == PHILOX_NORMAL) {
        text_printf(m->out, "normal_at(%s, %" PRIu32 "u, %s, (u32)draws[1], (u32)draws[2])", seed, s->stream, index);
        return;
    }
    text_printf(m->out, "philox_uniform(philox_at(%s, %" PRIu32 "u, %s, (u32)draws[1], (u32)draws[2], PHILOX_VALUE))",
                seed, s->stream, index);
    if (s->law == PHILOX_KEEP)
        text_printf(m->out, " >= %s ? 1.0f : 0.0f", scalar(m, F32, s->k[0]));
}

/* ---- steps ---- */

static const char *const kinds[] = { [REDUCE_SUM] = "sum",
                                     [REDUCE_SQUARES] = "squares",
                                     [REDUCE_PRODUCT] = "product",
                                     [REDUCE_MAX] = "max",
                                     [REDUCE_MIN] = "min" };

const char *cuda_kind(const TapeStep *fold)
{
    return kinds[reduction_kind(fold->op)];
}

/* A register of a kernel that does not make it itself. */
static void print_kept(const CudaMaker *m, const TapeStep *s, const CudaPlace *at)
{
    text_printf(m->out, "kept%d[%s]", s->out, at->row);
}

void cuda_step(const CudaMaker *m, const TapeStep *s, const CudaPlace *at)
{
    const Tape *t = m->tape;
    const char *type = dtype_name(t->registers[s->out].arithmetic);
    cuda_indent(m, at->indent);
    text_printf(m->out, "const %s r%d = ", type, s->out);
    const char *from = arena_printf(m->arena, "r%d", s->in[0]);
    if (at->reads_kept && m->kept_at[s->out] != CUDA_NOWHERE)
        print_kept(m, s, at);
    else if (s->word == TAPE_LOAD)
        text_add(m->out, cuda_load(m, t->in[s->in[0]]->dtype, s->arithmetic,
                                   cuda_element(m->arena, t->in[s->in[0]]->dtype,
                                                arena_printf(m->arena, "in%d", s->in[0]), place_of(m, s, at))));
    else if (s->word == TAPE_FILL)
        text_add(m->out, filled(m, s));
    else if (s->word == TAPE_DRAW)
        print_draw(m, s, at);
    else if (s->word == TAPE_ROW)
        print_row(m, s);
    else if (s->word == TAPE_ROUND)
        text_add(m->out, cuda_load(m, s->through, s->to, cuda_store(m, s->arithmetic, s->through, from)));
    else if (s->word == TAPE_HIT)
        text_printf(m->out, "(%s)((i64)%s == r%d)", type, at->column, s->in[0]);
    else if (s->word == TAPE_FOLD_ROW) /* a row of one element */
        text_printf(m->out, "%s_add_%s(%s_none_%s(), %s)", cuda_kind(s), type, cuda_kind(s), type, from);
    else
        text_add(m->out, from); /* SPREAD */
    text_printf(m->out, ";\n");
}
