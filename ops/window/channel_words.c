/* Operands of convolutions in bf16 as they are multiplied where the machine can: two channels at a time. */
#include "base/parallel.h"
#include "ops/window/correlate.h"

/* Whether groups run along planes, if nothing else is against it. */
static bool are_few(int64_t groups, int64_t channels, int64_t results)
{
    return groups > 1 && channels <= PLANES_MOST && results <= PLANES_MOST;
}

bool correlation_narrows(const Type *x, const Type *filter, int64_t groups, int64_t channels, int64_t results)
{
    return x->dtype == BF16 && filter->dtype == BF16 && channels > 1 && !are_few(groups, channels, results);
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

static void round_results(const void *eval, int64_t first, int64_t n, const f32 *v)
{
    eval_store_f32(eval, 0, first, v, n);
}

void correlation_operands(Eval *e, Correlation *c, int64_t images, int64_t in)
{
    const Arithmetic wide = c->f64 ? ARITH_F64 : ARITH_F32;
    c->is_bf16 = eval_options(e)->narrow && kernels_pairs_bf16(e->kernels) &&
                 correlation_narrows(e->in[0]->type, e->in[1]->type, c->groups, c->channels, c->results);
    c->kernels = e->kernels;
    c->bias = eval_has(e, 2) ? eval_wide(e, 2, wide) : NULL;
    c->by_lines = c->is_bf16 && lines_suit(c);
    if (c->is_bf16 && (c->by_lines || window_is_data(&c->w)))
        c->halves = e->in[0]->data;
    else if (c->is_bf16)
        c->x = channel_words(e, 0, images, c->groups, c->channels, in);
    else if (dtype_is_narrow(e->in[0]->type->dtype) && are_few(c->groups, c->channels, c->results))
        c->data = e->in[0];
    else
        c->x = eval_wide(e, 0, wide);
    if ((c->is_bf16 || c->data) && !c->apart && dtype_is_narrow(eval_out(e, 0)->type->dtype))
        c->taker = (ResultTaker){ round_results, e };
    else
        c->y = eval_out_wide(e, 0, wide);
}

void correlation_widen(Eval *e, Correlation *c)
{
    if (!c->data || c->planes.lines)
        return;
    c->x = eval_wide(e, 0, ARITH_F32);
    c->data = NULL;
}
