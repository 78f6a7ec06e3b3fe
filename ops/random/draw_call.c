#include "ops/random/draw_call.h"

#include <math.h>

#include "ops/random/random_draws.h"

enum { RATIO = 1, TRAINING = 2, ONE_NUMBER = 8 }; /* operands of dropout, and bytes of a scalar */
enum { NUMBERS = 1 << 24 };                       /* of [0, 1) that a word can be */

static u64 mixed(u32 own)
{
    return (u64)own << 32;
}

/* One that drops something, and says how much before it runs.  Its words are multiples of 2^-24: they are compared with the
 * next one. */
static bool read_dropout(const Node *n, DrawCall *d)
{
    const DropoutAttr *at = n->attr;
    const Node *by = n->n_in > RATIO ? in(n, RATIO) : NULL, *mode = n->n_in > TRAINING ? in(n, TRAINING) : NULL;
    const Tensor *ratio = by ? node_constant(by, ONE_NUMBER) : NULL,
                 *training = mode ? node_constant(mode, ONE_NUMBER) : NULL;
    const double p = by ? (ratio ? tensor_get_f64(ratio, 0) : -1) : 0.5;
    if (n->type->kind != TYPE_TENSOR || !training || !tensor_get_i64(training, 0) || !(p > 0 && p < 1))
        return false;
    *d = (DrawCall){ .law = PHILOX_KEEP, .stream = (u32)at->stream, .limit = (f32)(ceil(p * NUMBERS) / NUMBERS) };
    d->own = at->seed == NO_SEED ? 0 : mixed((u32)at->seed);
    d->scale = n->type->dtype == F64 ? 1 / (1 - p) : (double)(1 / (1 - (f32)p));
    return true;
}

static bool read_random(const Node *n, PhiloxLaw law, DrawCall *d)
{
    const RandomAttr *at = n->attr;
    if (n->type->dtype == F64)
        return false;
    *d = (DrawCall){ .law = law, .stream = (u32)at->stream, .offset = (double)at->first };
    d->own = at->seed == at->seed ? mixed(bits_of(at->seed)) : 0;
    d->scale = (double)(law == PHILOX_NORMAL ? at->second : at->second - at->first);
    return true;
}

bool draw_of(const Node *n, DrawCall *d)
{
    switch (n->op) {
    case OP_dropout:
        return read_dropout(n, d);
    case OP_random_normal:
    case OP_random_normal_like:
        return read_random(n, PHILOX_NORMAL, d);
    case OP_random_uniform:
    case OP_random_uniform_like:
        return read_random(n, PHILOX_UNIFORM, d);
    default:
        return false;
    }
}
