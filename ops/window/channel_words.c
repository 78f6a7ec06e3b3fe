/* Operands of convolutions in bf16 as they are multiplied where the machine can: two channels at a time. */
#include "base/parallel.h"
#include "ops/window/correlate.h"

bool correlation_narrows(const Type *x, const Type *filter, int64_t groups, int64_t channels, int64_t results)
{
    const bool along_planes = groups > 1 && channels <= PLANES_MOST && results <= PLANES_MOST;
    return x->dtype == BF16 && filter->dtype == BF16 && channels > 1 && !along_planes;
}

typedef struct WordsRun {
    const PairLoops *pairs;
    int64_t groups, channels, words, in; /* channels and words of a group */
    const u16 *x;
    u32 *to;
} WordsRun;

static void make_words(void *arg, int64_t begin, int64_t end, int worker)
{
    const WordsRun *r = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / r->words, channel = 2 * (i % r->words);
        const u16 *low = r->x + (group * r->channels + channel) * r->in;
        r->pairs->pair((size_t)r->in, low, channel + 1 < r->channels ? low + r->in : NULL, r->to + i * r->in);
    }
}

const void *channel_words(Eval *e, int i, int64_t images, int64_t groups, int64_t channels, int64_t in)
{
    WordsRun r = { .pairs = kernels_pairs_bf16(e->kernels),
                   .groups = groups,
                   .channels = channels,
                   .words = (channels + 1) / 2,
                   .in = in,
                   .x = e->in[i]->data };
    r.to = eval_room(e, (size_t)(images * groups * r.words * in), sizeof(u32));
    eval_parallel(e, images * groups * r.words, make_words, &r);
    return r.to;
}

void correlation_operands(Eval *e, Correlation *c, int64_t images, int64_t in)
{
    const Arithmetic wide = c->f64 ? ARITH_F64 : ARITH_F32;
    c->is_bf16 = eval_options(e)->narrow && kernels_pairs_bf16(e->kernels) &&
                 correlation_narrows(e->in[0]->type, e->in[1]->type, c->groups, c->channels, c->results);
    c->kernels = e->kernels;
    c->x = c->is_bf16 ? channel_words(e, 0, images, c->groups, c->channels, in) : eval_wide(e, 0, wide);
    c->bias = eval_has(e, 2) ? eval_wide(e, 2, wide) : NULL;
    if (c->is_bf16 && !c->apart && eval_type(e, 0)->dtype == BF16)
        c->store = e;
    else
        c->y = eval_out_wide(e, 0, wide);
}
