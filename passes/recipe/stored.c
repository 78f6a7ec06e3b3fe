#include "passes/recipe/stored.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/hash.h"
#include "base/philox.h"
#include "ops/scalar.h"
#include "ops/update/update.h"

/* ---- forms ---- */

static bool type_of_codes(const Quantizer *q, DType *type)
{
    const bool is_signed = q->format == FORMAT_INT;
    if (!is_signed && q->format != FORMAT_UINT)
        return false;
    *type = q->bits == 8 ? (is_signed ? I8 : U8) : (is_signed ? I4 : U4);
    return q->bits == 8 || q->bits == 4;
}

bool stored_form_of(StoredForm *form, const Quantizer *q)
{
    const bool rounds =
        quantizer_says(q, QUANT_ROUNDING, ROUNDING_RNE) || quantizer_says(q, QUANT_ROUNDING, ROUNDING_SR);
    *form = (StoredForm){ .by = *q, .type = BF16 };
    if (!q->on || !rounds || q->part[QUANT_TURN].value || q->part[QUANT_START].value || q->part[QUANT_BITS].value)
        return false;
    if (q->format == FORMAT_BF16)
        return true;
    quantizer_codes(q, &form->least, &form->largest);
    form->zeros = quantizer_says(q, QUANT_ZERO, ZERO_ASYM);
    return type_of_codes(q, &form->type) && quantizer_says(q, QUANT_SCALE, SCALE_F32) &&
           quantizer_says(q, QUANT_CHOICE, CHOICE_ABSMAX) &&
           (quantizer_says(q, QUANT_SOURCE, SOURCE_DYNAMIC) || quantizer_says(q, QUANT_SOURCE, SOURCE_MINMAX)) &&
           !quantizer_says(q, QUANT_GRAIN, GRAIN_TILE) && !quantizer_says(q, QUANT_ZERO, ZERO_LEARNED) &&
           (form->zeros || form->least == -form->largest);
}

Status stored_form(StoredForm *form, const char *words, Arena *arena, Diag *diag)
{
    Quantizer q;
    const Place place = { .where = "stored", .byte = -1 };
    TRY(quantizer_read_one(&q, OPERAND_W, place, "stored", words, arena, diag));
    if (stored_form_of(form, &q))
        return OK;
    return fail_as(diag, UNSUPPORTED, place, "no state is stored as %s", words);
}

/* ---- which scale a code has ---- */

/* A walk over lines along the last dimension, each with the place of its first scale. */
typedef struct Lines {
    const Type *codes, *scale;
    int64_t at[MAX_RANK];
    int64_t part[MAX_RANK], step[MAX_RANK]; /* codes that share a scale in each dimension; how far scales are apart */
    int64_t n, length;
    int64_t first; /* the place of the first scale of this line */
} Lines;

static Lines lines_of(const Type *codes, const Type *scale)
{
    Lines l = { .codes = codes, .scale = scale, .n = 1, .length = 1 };
    int64_t step = 1;
    for (int i = codes->rank; i-- > 0;) {
        const int64_t have = scale ? scale->dims[i] : 1;
        l.part[i] = have ? codes->dims[i] / have : 1;
        l.part[i] = l.part[i] ? l.part[i] : 1;
        l.step[i] = have == 1 ? 0 : step;
        step *= have;
        l.n *= i < codes->rank - 1 ? codes->dims[i] : 1;
    }
    if (codes->rank)
        l.length = codes->dims[codes->rank - 1];
    return l;
}

static void next_line(Lines *l)
{
    l->first = 0;
    for (int i = l->codes->rank - 1; i-- > 0;) {
        if (++l->at[i] < l->codes->dims[i])
            break;
        l->at[i] = 0;
    }
    for (int i = 0; i < l->codes->rank - 1; i++)
        l->first += l->at[i] / l->part[i] * l->step[i];
}

/* The place of the scale of code j of the line. */
static int64_t scale_at(const Lines *l, int64_t j)
{
    const int last = l->codes->rank - 1;
    return last < 0 ? 0 : l->first + j / l->part[last] * l->step[last];
}

/* ---- rounding ---- */

/* The least and the largest number of each scale, 0 among them. */
static void find_ranges(const Tensor *numbers, const Type *scale, float *lo, float *hi)
{
    const float *x = numbers->data;
    Lines l = lines_of(numbers->type, scale);
    for (int64_t line = 0; line < l.n; line++, next_line(&l), x += l.length)
        for (int64_t j = 0; j < l.length; j++) {
            const int64_t k = scale_at(&l, j);
            lo[k] = x[j] < lo[k] ? x[j] : lo[k];
            hi[k] = x[j] > hi[k] ? x[j] : hi[k];
        }
}

static float within(float x, float least, float largest)
{
    return x < least ? least : x > largest ? largest : x;
}

/* 0 where `code` is that end of the codes, else what a step has to be for `number` to reach it from there. */
static float step_to(float number, float code, float end)
{
    return code == end ? 0 : number / (end - code);
}

/* The code of 0 of numbers from lo to hi, 0 among them, and a scale with which both ends have codes: what updates
 * choose, too (ops/update). */
static float find_zero(const StoredForm *f, float lo, float hi, float *zero)
{
    const float least = (float)f->least, largest = (float)f->largest, each = (hi - lo) / (largest - least);
    float z = within(rintf(least - lo / (each > UPDATE_LEAST_SCALE ? each : UPDATE_LEAST_SCALE)), least, largest);
    if (lo < 0 && z == least)
        z = least + 1;
    if (hi > 0 && z == largest)
        z = largest - 1;
    const float down = step_to(lo, z, least), up = step_to(hi, z, largest);
    *zero = z;
    return down > up ? down : up;
}

static void find_scales(const StoredForm *f, const float *lo, const float *hi, Tensor *scale, Tensor *zero)
{
    float *s = scale->data, z = 0;
    for (int64_t k = 0; k < tensor_elements(scale); k++) {
        const float size = -lo[k] > hi[k] ? -lo[k] : hi[k];
        const float of = f->zeros ? find_zero(f, lo[k], hi[k], &z) : size / (float)f->largest;
        s[k] = of > UPDATE_LEAST_SCALE ? of : UPDATE_LEAST_SCALE;
        if (f->zeros)
            tensor_set_i64(zero, k, (int64_t)z);
    }
}

/* How numbers become whole ones. */
typedef struct Rounding {
    bool by_chance;
    uint32_t stream;
    Philox4 group; /* the words of four elements */
} Rounding;

/* The number of [0, 1) of element i; they are asked for in their order. */
static float draw_at(Rounding *r, int64_t i)
{
    if (i % 4 == 0)
        r->group = philox_group(0, r->stream, (uint64_t)i, 0, 0, PHILOX_ROUND);
    return philox_uniform(r->group.v[i % 4]);
}

static float rounded(Rounding *r, float x, int64_t i)
{
    return r->by_chance ? stochastic_f32(x, draw_at(r, i)) : rintf(x);
}

static void round_codes(const StoredForm *f, Rounding *r, const Tensor *numbers, Tensor *codes, const Tensor *scale,
                        const Tensor *zero)
{
    const float *x = numbers->data, *s = scale->data;
    const float least = (float)f->least, largest = (float)f->largest;
    Lines l = lines_of(numbers->type, scale->type);
    for (int64_t line = 0; line < l.n; line++, next_line(&l), x += l.length)
        for (int64_t j = 0; j < l.length; j++) {
            const int64_t k = scale_at(&l, j);
            const int64_t i = line * l.length + j;
            const float z = zero ? (float)tensor_get_i64(zero, k) : 0,
                        q = within(rounded(r, x[j] / s[k], i) + z, least, largest);
            tensor_set_i64(codes, i, x[j] != x[j] ? (int64_t)z : (int64_t)q);
        }
}

static void round_floats(Rounding *r, const Tensor *numbers, Tensor *to)
{
    const float *x = numbers->data;
    if (r->by_chance)
        for (int64_t i = 0; i < tensor_elements(numbers); i++)
            tensor_set_f64(to, i, stochastic_bf16_f32(x[i], draw_at(r, i)));
    else
        bf16_from_f32_block(to->data, x, (size_t)tensor_elements(numbers));
}

static void round_all(const StoredForm *f, Rounding *r, const Tensor *numbers, Tensor *codes, Tensor *scale,
                      Tensor *zero, Arena *scratch)
{
    if (!scale) {
        round_floats(r, numbers, codes);
        return;
    }
    const size_t n = (size_t)tensor_elements(scale);
    float *lo = NEWS(scratch, float, n + 1), *hi = NEWS(scratch, float, n + 1);
    find_ranges(numbers, scale->type, lo, hi);
    find_scales(f, lo, hi, scale, zero);
    round_codes(f, r, numbers, codes, scale, zero);
}

void stored_round(const StoredForm *f, const Tensor *numbers, Tensor *codes, Tensor *scale, Tensor *zero,
                  Arena *scratch)
{
    Rounding nearest = { .by_chance = false };
    round_all(f, &nearest, numbers, codes, scale, zero, scratch);
}

void stored_begin(const StoredForm *f, const char *name, const Tensor *numbers, Tensor *codes, Tensor *scale,
                  Tensor *zero, Arena *scratch)
{
    const char *purpose = arena_printf(scratch, "begin/%s", name);
    Rounding r = { .by_chance = quantizer_says(&f->by, QUANT_FIRST, FIRST_SR),
                   .stream = (uint32_t)(hash64(purpose, strlen(purpose), 0) & 0x7fffffff) };
    round_all(f, &r, numbers, codes, scale, zero, scratch);
}

/* ---- numbers ---- */

void stored_numbers(const Tensor *codes, const Tensor *scale, const Tensor *zero, Tensor *numbers)
{
    float *y = numbers->data;
    const float *s = scale ? scale->data : NULL;
    Lines l = lines_of(codes->type, scale ? scale->type : NULL);
    for (int64_t i = 0; i < tensor_elements(codes) && !scale; i++)
        y[i] = (float)tensor_get_f64(codes, i);
    for (int64_t line = 0; line < l.n && scale; line++, next_line(&l))
        for (int64_t j = 0; j < l.length; j++) {
            const int64_t i = line * l.length + j, k = scale_at(&l, j), z = zero ? tensor_get_i64(zero, k) : 0;
            y[i] = (float)(tensor_get_i64(codes, i) - z) * s[k];
        }
}
