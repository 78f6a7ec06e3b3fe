/* Cross-layer equalization: a channel may be small in one layer and its weights in the next one large instead; where
 * nothing but a Relu stands between that is the same function, and codes with one scale for all channels hold it better. */
#include <inttypes.h>
#include <math.h>

#include "api/ptq/ptq.h"
#include "passes/ptq/chains.h"

enum { SWEEPS = 20 };
static const double factor_most = 1e4, clip_margin = 1.05, enough = 1.001;

/* A chain while factors are found. */
typedef struct Pair {
    Chain c;
    double *seen, *factor; /* of each channel: the largest number between the layers; what it was divided by */
    int64_t held;          /* channels that reach the bound of the Clip */
} Pair;

typedef struct Equalize {
    Walk *walk;
    Pair *list;
    size_t n;
    Arena *arena;
} Equalize;

/* ---- what is seen ---- */

/* The largest number of each channel, along dimension 1 of all batches. */
static void see(Equalize *e, Pair *p)
{
    const size_t many = walk_count(e->walk, p->c.between);
    for (size_t i = 0; i < many; i++) {
        const Tensor *t = walk_value(e->walk, p->c.between, i, true);
        int64_t inner = 1;
        for (int k = 2; k < t->type->rank; k++)
            inner *= t->type->dims[k];
        for (int64_t k = 0; k < tensor_elements(t); k++) {
            double *most = &p->seen[k / inner % p->c.channels];
            *most = fmax(*most, fabs(tensor_get_f64(t, k)));
        }
    }
}

static Status met(void *user, Walk *w, Node *n)
{
    Equalize *e = user;
    (void)w;
    for (size_t i = 0; i < e->n; i++)
        if (e->list[i].c.between == n)
            see(e, &e->list[i]);
    return OK;
}

/* ---- ranges of channels ---- */

static int64_t inner_of(const Type *t, int axis)
{
    int64_t n = 1;
    for (int i = axis + 1; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

/* Element k of the first layer's weight, and of the next one's, belongs to this channel. */
static int64_t channel_of(const Chain *c, int64_t k)
{
    return k / inner_of(c->weight->type, c->axis) % c->channels;
}

static int64_t next_channel_of(const Chain *c, int64_t k)
{
    return k / inner_of(c->next->type, c->next_axis) % (c->channels * c->repeat) / c->repeat;
}

static Tensor *own_value(Equalize *e, const Node *state)
{
    return (Tensor *)(uintptr_t)walk_value(e->walk, state, 0, true);
}

static void ranges(Equalize *e, const Chain *c, bool of_next, double *range)
{
    const Tensor *t = own_value(e, of_next ? c->next : c->weight);
    for (int64_t i = 0; i < c->channels; i++)
        range[i] = 0;
    for (int64_t k = 0; k < tensor_elements(t); k++) {
        double *r = &range[of_next ? next_channel_of(c, k) : channel_of(c, k)];
        *r = fmax(*r, fabs(tensor_get_f64(t, k)));
    }
}

/* How far the largest channel is above the smallest. */
static double spread(const double *range, int64_t n)
{
    double least = (double)INFINITY, most = 0;
    for (int64_t i = 0; i < n; i++)
        if (range[i] > 0) {
            least = fmin(least, range[i]);
            most = fmax(most, range[i]);
        }
    return most > 0 ? most / least : 1;
}

/* ---- factors ---- */

/* What the channel is divided by: both layers have the same range then.  A channel that reaches the bound of a Clip
 * would be cut elsewhere, and stays; one that does not stays below it. */
static double factor_of(const Pair *p, int64_t i, double first, double next)
{
    double f = first > 0 && next > 0 ? sqrt(first / next) : 1;
    f = fmin(fmax(f, 1 / factor_most), factor_most);
    if (isinf(p->c.most))
        return f;
    if (p->seen[i] >= p->c.most)
        return 1;
    return fmax(f, p->seen[i] * clip_margin / p->c.most);
}

static void divide(Equalize *e, Pair *p, const double *f)
{
    Tensor *w = own_value(e, p->c.weight), *next = own_value(e, p->c.next), *b = NULL;
    if (p->c.bias)
        b = own_value(e, p->c.bias);
    for (int64_t k = 0; k < tensor_elements(w); k++)
        tensor_set_f64(w, k, tensor_get_f64(w, k) / f[channel_of(&p->c, k)]);
    for (int64_t k = 0; k < tensor_elements(next); k++)
        tensor_set_f64(next, k, tensor_get_f64(next, k) * f[next_channel_of(&p->c, k)]);
    for (int64_t i = 0; i < p->c.channels; i++) {
        if (b)
            tensor_set_f64(b, i, tensor_get_f64(b, i) / f[i]);
        p->factor[i] *= f[i];
        p->seen[i] /= f[i];
    }
}

/* One pair; how far the factor that is furthest from 1 is from it. */
static double balance(Equalize *e, Pair *p)
{
    const int64_t n = p->c.channels;
    double *first = NEWS(e->arena, double, n), *next = NEWS(e->arena, double, n), far = 1;
    ranges(e, &p->c, false, first);
    ranges(e, &p->c, true, next);
    for (int64_t i = 0; i < n; i++) {
        first[i] = factor_of(p, i, first[i], next[i]);
        far = fmax(far, fmax(first[i], 1 / first[i]));
    }
    divide(e, p, first);
    return far;
}

/* ---- all of them ---- */

static void open_pairs(Equalize *e)
{
    size_t n;
    const Chain *chains = chains_of(e->walk->g, e->arena, &n);
    e->list = NEWS(e->arena, Pair, n + 1);
    for (size_t i = 0; i < n; i++) {
        Pair *p = &e->list[e->n++];
        p->c = chains[i];
        p->seen = NEWS(e->arena, double, p->c.channels);
        p->factor = NEWS(e->arena, double, p->c.channels);
        for (int64_t k = 0; k < p->c.channels; k++)
            p->factor[k] = 1;
    }
}

static const char *name_of_call(const Node *n)
{
    return n->label ? n->label : n->name ? n->name : "?";
}

static void tell(Equalize *e, Text *told, const double *before)
{
    double *range = NULL;
    for (size_t i = 0; i < e->n; i++) {
        Pair *p = &e->list[i];
        range = NEWS(e->arena, double, p->c.channels);
        ranges(e, &p->c, false, range);
        text_printf(told, "  equalized      %s -> %s: %" PRId64 " channels, largest over smallest %.3g, was %.3g",
                    name_of_call(p->c.first), name_of_call(p->c.second), p->c.channels - p->held,
                    spread(range, p->c.channels), before[i]);
        if (p->held)
            text_printf(told, "; %" PRId64 " reach the %.3g of the Clip and stay", p->held, p->c.most);
        text_add(told, "\n");
    }
}

static Status put_all(Equalize *e)
{
    for (size_t i = 0; i < e->n; i++) {
        const Chain *c = &e->list[i].c;
        TRY(ptq_put(e->walk->run, c->weight->name, own_value(e, c->weight)));
        TRY(ptq_put(e->walk->run, c->next->name, own_value(e, c->next)));
        if (c->bias)
            TRY(ptq_put(e->walk->run, c->bias->name, own_value(e, c->bias)));
    }
    return OK;
}

static Status equalize(Equalize *e, Text *told)
{
    double *before = NEWS(e->arena, double, e->n + 1), far = 2;
    TRY(walk_all(e->walk, met, e));
    for (size_t i = 0; i < e->n; i++) {
        Pair *p = &e->list[i];
        double *range = NEWS(e->arena, double, p->c.channels);
        ranges(e, &p->c, false, range);
        before[i] = spread(range, p->c.channels);
        for (int64_t k = 0; k < p->c.channels && !isinf(p->c.most); k++)
            p->held += p->seen[k] >= p->c.most;
    }
    for (int k = 0; k < SWEEPS && far > enough; k++) {
        far = 1;
        for (size_t i = 0; i < e->n; i++)
            far = fmax(far, balance(e, &e->list[i]));
    }
    TRY(put_all(e));
    tell(e, told, before);
    if (!e->n)
        text_add(
            told,
            "  equalized      nothing: no two layers follow each other with a Relu or a Clip from 0 at most between\n");
    return OK;
}

Status ptq_equalize(qcc_step *step, Session *run, const Batches *batches, Text *told)
{
    Walk w;
    Status status = walk_open(&w, step, run, batches);
    Equalize e = { .walk = &w, .arena = &w.arena };
    w.floats_alone = true;
    if (status == OK)
        open_pairs(&e);
    if (status == OK)
        status = equalize(&e, told);
    walk_close(&w);
    return status;
}
