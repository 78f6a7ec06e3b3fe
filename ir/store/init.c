#include "ir/store/init.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

static const struct {
    const char *word;
    bool draws;
} rows[] = {
#define ROW(id, word, draws, what) [INIT_##id] = { word, draws },
    INITS(ROW)
#undef ROW
};

const char *init_word(InitKind kind)
{
    return rows[kind].word;
}

bool init_draws(InitKind kind)
{
    return rows[kind].draws;
}

/* Natural logarithm of a number in (0, 1], by operations that every machine rounds alike. */
static double log_of_unit(double x)
{
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    const double s = (m - 1) / (m + 1), q = s * s;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * q + 1.0 / k;
    return 2 * s * sum + exponent * 0.69314718055994531;
}

/* The polar method: sqrt is exact everywhere, log is ours. */
static double draw_normal(Rng *r)
{
    double u, v, s;
    do {
        u = 2 * rng_unit(r) - 1;
        v = 2 * rng_unit(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log_of_unit(s) / s);
}

/* Inputs that one unit sums: rows of a matrix (it stands on the right), all but the first axis of a filter. */
static double fan_in(const Type *type)
{
    double n = 1;
    if (type->rank == 1 || type->rank == 2)
        return type->dims[0] > 0 ? (double)type->dims[0] : 1;
    for (int i = 1; i < type->rank; i++)
        n *= type->dims[i] > 0 ? (double)type->dims[i] : 1;
    return n;
}

static Init init_of(const Payload *p)
{
    Init init = { .kind = (InitKind)(p->where & 0xff), .seed = p->length };
    const uint32_t bits = (uint32_t)(p->where >> 32);
    memcpy(&init.scale, &bits, sizeof bits);
    return init;
}

static double next_value(const Init *init, double bound, Rng *rng)
{
    return init->kind == INIT_ONES     ? 1
           : init->kind == INIT_NORMAL ? bound * draw_normal(rng)
                                       : bound * (2 * rng_unit(rng) - 1);
}

static Status read_init(Payload *p, void *out, size_t bytes, Diag *diag)
{
    const Init init = init_of(p);
    const double bound = init.kind == INIT_KAIMING ? init.scale * sqrt(6 / fan_in(p->type)) : init.scale;
    Tensor t = { .type = p->type, .data = out, .bytes = bytes };
    Rng rng = { init.seed * 0x9e3779b97f4a7c15u + 1 };
    (void)diag;
    if (init.kind == INIT_ZEROS) {
        memset(out, 0, bytes);
        return OK;
    }
    if (dtype_bits(p->type->dtype) < 8 && bytes)
        ((char *)out)[bytes - 1] = 0;
    const int64_t n = type_elements(p->type);
    if (p->type->dtype == F32) /* the usual weights, millions of them */
        for (int64_t i = 0; i < n; i++)
            ((float *)out)[i] = (float)next_value(&init, bound, &rng);
    else
        for (int64_t i = 0; i < n; i++)
            tensor_set_f64(&t, i, next_value(&init, bound, &rng));
    return OK;
}

Payload *payload_init(Arena *arena, const Type *type, Init init)
{
    Payload *p = NEW(arena, Payload);
    uint32_t bits;
    memcpy(&bits, &init.scale, sizeof bits);
    *p = (Payload){
        .type = type, .arena = arena, .read = read_init, .where = (uint64_t)bits << 32 | init.kind, .length = init.seed
    };
    return p;
}

bool payload_is_init(const Payload *p, Init *init)
{
    if (p->read == read_init)
        *init = init_of(p);
    return p->read == read_init;
}
