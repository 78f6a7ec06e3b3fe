/* The walk of lstm, gru and rnn over time: x W' of every step at once, then step after step h R' and the cell.
 *
 * Threads share a walk by sequences, which never meet.  Where each would have too few of them to make up for reading all of R, they
 * share every step by units, each with its columns of R: what a step makes of the state is not read before the next one, so that
 * two states that take turns are enough. */
#include <string.h>

#include "ops/recurrent/recurrent.h"

Layout recurrent_layout(const RecurrentAttr *at, const RecurrentShape *s)
{
    const int64_t n = s->hidden, d = s->directions;
    if (at->layout)
        return (Layout){ { 1, 0, s->steps }, { d * n, n, s->steps * d * n }, { 0, n, d * n } };
    return (Layout){ { s->batch, 0, 1 }, { d * s->batch * n, s->batch * n, n }, { 0, s->batch * n, n } };
}

enum {
    BLOCK = MOST_PANEL_WIDTH, /* units that nobody shares: whole panels at every level */
    FEW = 4,                  /* sequences a thread are not worth a walk of its own */
};

static const double worth = 1 << 18; /* some microseconds, which waking a thread takes */

/* Few shares, and whole ones, for products prepare what all rows of theirs read: one a thread, and more where a stop would have to
 * wait for long. */
typedef struct Shares {
    ParallelFn fn;
    void *arg;
    int64_t n, each;
} Shares;

static void do_shares(void *arg, int64_t begin, int64_t end, int worker)
{
    const Shares *s = arg;
    for (int64_t i = begin; i < end; i++)
        s->fn(s->arg, i * s->each, (i + 1) * s->each < s->n ? (i + 1) * s->each : s->n, worker);
}

void recurrent_shares(Eval *e, int64_t n, int64_t whole, double work, ParallelFn fn, void *arg)
{
    const double long_while = 1 << 30;
    const int64_t parts = parallel_threads(e->pool) * (1 + (int64_t)(work / long_while));
    if (!n)
        return;
    Shares s = { fn, arg, n, ((n + parts - 1) / parts + whole - 1) / whole * whole };
    if (work >= worth)
        eval_parallel(e, (n + s.each - 1) / s.each, do_shares, &s);
    else
        fn(arg, 0, n, 0);
}

static int64_t blocks_of(int64_t units)
{
    return (units + BLOCK - 1) / BLOCK;
}

/* A walk under way. */
typedef struct Going {
    const Eval *e;
    const RecurrentShape *s;
    RecurrentTake *take;
    const void *walk;
    bool by_units;
    int64_t begin, end; /* steps */
} Going;

static void go(void *arg, int64_t begin, int64_t end, int worker)
{
    const Going *g = arg;
    RecurrentShare share = { begin, end, 0, g->s->hidden, worker };
    if (g->by_units) {
        const int64_t last = end * BLOCK < g->s->hidden ? end * BLOCK : g->s->hidden;
        share = (RecurrentShare){ 0, g->s->batch, begin * BLOCK, last - begin * BLOCK, worker };
    }
    for (int64_t t = g->begin; t < g->end && !eval_stopped(g->e); t++)
        g->take(g->walk, &share, t);
}

void recurrent_walk(Eval *e, const RecurrentShape *s, bool parts, int64_t steps, double work, RecurrentTake *take,
                    const void *walk)
{
    const int64_t blocks = blocks_of(s->hidden), threads = parallel_threads(e->pool);
    const double each = steps ? work / (double)steps : 0;
    const bool few = s->batch < FEW * threads && blocks >= threads && each >= worth;
    Going g = { e, s, take, walk, parts && threads > 1 && few, 0, steps };
    if (!g.by_units) {
        recurrent_shares(e, s->batch, (s->batch + threads - 1) / threads, work, go, &g);
        return;
    }
    for (int64_t t = 0; t < steps; t++) {
        g.begin = t;
        g.end = t + 1;
        recurrent_shares(e, blocks, 1, each, go, &g);
    }
}

#define ARITH_OF_f32 ARITH_F32
#define ARITH_OF_f64 ARITH_F64

bool recurrent_in_words(const Eval *e, const Cell *cell, DType own)
{
    return own == BF16 && eval_options(e)->narrow && kernels_packed_bf16(e->kernels) &&
           !recurrent_is_whole(cell, e->attr);
}

#define RECURRENT(T, STEP, RECALL)                                                                                     \
    typedef struct Product_##T {                                                                                       \
        const Kernels *kernels;                                                                                        \
        const Panel *p;                                                                                                \
        const void *a;                                                                                                 \
        const PanelSide *sides;                                                                                        \
        size_t n, room_each;                                                                                           \
        T *room;                                                                                                       \
    } Product_##T;                                                                                                     \
    static void rows_of_##T(void *arg, int64_t begin, int64_t end, int worker)                                         \
    {                                                                                                                  \
        const Product_##T *r = arg;                                                                                    \
        Panel p = *r->p;                                                                                               \
        PanelSide sides[RECURRENT_SIDES];                                                                              \
        p.m = (size_t)(end - begin);                                                                                   \
        for (size_t i = 0; i < r->n; i++) {                                                                            \
            sides[i] = r->sides[i];                                                                                    \
            sides[i].c = (T *)sides[i].c + (size_t)begin * sides[i].ldc;                                               \
        }                                                                                                              \
        T *room = r->room + (size_t)worker * r->room_each;                                                             \
        const size_t at = (size_t)begin * p.lda;                                                                       \
        if (p.is_bf16)                                                                                                 \
            panel_sides_bf16(r->kernels, &p, (const u16 *)r->a + at, sides, r->n, (void *)room);                       \
        else                                                                                                           \
            panel_sides_##T(r->kernels, &p, (const T *)r->a + at, sides, r->n, room);                                  \
    }                                                                                                                  \
    void recurrent_products_##T(Eval *e, const Panel *p, const void *a, const PanelSide *sides, size_t n)              \
    {                                                                                                                  \
        Product_##T r = { e->kernels, p, a, sides, n, 0, NULL };                                                       \
        Panel widest = *p;                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            widest.n = sides[i].n > widest.n ? sides[i].n : widest.n;                                                  \
            widest.b_step = sides[i].b_step > widest.b_step ? sides[i].b_step : widest.b_step;                         \
        }                                                                                                              \
        r.room_each = panel_room(&widest);                                                                             \
        r.room = eval_room(e, (size_t)parallel_threads(e->pool) * r.room_each, sizeof(T));                             \
        recurrent_shares(e, (int64_t)p->m, WHOLE_TILES, (double)p->m *(double)widest.n *(double)p->k, rows_of_##T,     \
                         &r);                                                                                          \
    }                                                                                                                  \
    void recurrent_product_##T(Eval *e, const Panel *p, const void *a, const void *b, T *c)                            \
    {                                                                                                                  \
        const PanelSide side = { .n = p->n, .ldb = p->ldb, .b_step = p->b_step, .ldc = p->ldc, .b = b, .c = c };       \
        recurrent_products_##T(e, p, a, &side, 1);                                                                     \
    }                                                                                                                  \
    /* Panels are packed one by one, by whoever is there. */                                                           \
    typedef struct Packing_##T {                                                                                       \
        const Kernels *kernels;                                                                                        \
        RECALL *recall;                                                                                                \
        Panel p;                                                                                                       \
        const void *r;                                                                                                 \
        size_t gate;                                                                                                   \
        void *to;                                                                                                      \
    } Packing_##T;                                                                                                     \
    static void pack_##T(void *arg, int64_t begin, int64_t end, int worker)                                            \
    {                                                                                                                  \
        const Packing_##T *k = arg;                                                                                    \
        const size_t n = (size_t)k->recall->units;                                                                     \
        const int64_t across = blocks_of(k->recall->units);                                                            \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const size_t gate = (size_t)(i / across), unit = (size_t)(i % across) * BLOCK;                             \
            Panel p = k->p;                                                                                            \
            p.n = n - unit < BLOCK ? n - unit : BLOCK;                                                                 \
            const size_t from = gate * k->gate + unit * p.b_step,                                                      \
                         to = gate * k->recall->gate + unit * k->recall->depth;                                        \
            if (p.is_bf16)                                                                                             \
                panel_pack_bf16(k->kernels, &p, (const u16 *)k->r + from, (u16 *)k->to + to);                          \
            else                                                                                                       \
                panel_pack_##T(k->kernels, &p, (const T *)k->r + from, (T *)k->to + to);                               \
        }                                                                                                              \
        (void)worker;                                                                                                  \
    }                                                                                                                  \
    RECALL recurrent_recall_##T(Eval *e, const RecurrentShape *s, const Panel *p, const void *r, int gates,            \
                                size_t gate)                                                                           \
    {                                                                                                                  \
        const PackedLoops *l =                                                                                         \
            p->is_bf16 ? kernels_packed_bf16(e->kernels) : kernels_packed(e->kernels, ARITH_OF_##T);                   \
        const size_t depth = (p->k + l->depth - 1) / l->depth * l->depth;                                              \
        RECALL recall = { .product = *p, .gates = gates, .units = s->hidden, .depth = depth };                         \
        const Panel block = { .n = BLOCK, .k = p->k };                                                                 \
        const int64_t blocks = blocks_of(s->hidden);                                                                   \
        recall.gate = (size_t)blocks * panel_packed(&block);                                                           \
        void *to = eval_room(e, (size_t)gates * recall.gate, sizeof(T));                                               \
        Packing_##T k = { e->kernels, &recall, *p, r, gate, to };                                                      \
        recurrent_shares(e, gates *blocks, 1, 4 * (double)p->k * (double)gates * (double)s->hidden, pack_##T, &k);     \
        recall.panels = to;                                                                                            \
        recall.product.columns_packed = true;                                                                          \
        recall.product.ldb = depth * l->width;                                                                         \
        recall.product.b_step = 0;                                                                                     \
        recall.product.m = (size_t)s->batch;                                                                           \
        recall.product.n = (size_t)s->hidden;                                                                          \
        recall.room_each = panel_room(&recall.product);                                                                \
        return recall;                                                                                                 \
    }                                                                                                                  \
    void recurrent_recalled_##T(const STEP *step, const RECALL *recall, const RecurrentShare *share, const void *from, \
                                T *to)                                                                                 \
    {                                                                                                                  \
        PanelSide sides[RECURRENT_SIDES];                                                                              \
        Panel p = recall->product;                                                                                     \
        p.m = (size_t)(share->end - share->begin);                                                                     \
        const size_t one = p.is_bf16 ? sizeof(u16) : sizeof(T), a = (size_t)share->begin * p.lda;                      \
        T *room = step->room + (size_t)share->worker * recall->room_each;                                              \
        for (int g = 0; g < recall->gates; g++) {                                                                      \
            const size_t at = (size_t)g * recall->gate + (size_t)share->unit * recall->depth;                          \
            sides[g] = (PanelSide){ .n = (size_t)share->units,                                                         \
                                    .ldb = p.ldb,                                                                      \
                                    .ldc = p.ldc,                                                                      \
                                    .b = (const char *)recall->panels + at * one,                                      \
                                    .c = to + (size_t)share->begin * p.ldc + g * recall->units + share->unit };        \
        }                                                                                                              \
        if (p.is_bf16)                                                                                                 \
            panel_sides_bf16(step->kernels, &p, (const u16 *)from + a, sides, (size_t)recall->gates, (void *)room);    \
        else                                                                                                           \
            panel_sides_##T(step->kernels, &p, (const T *)from + a, sides, (size_t)recall->gates, room);               \
    }                                                                                                                  \
    void recurrent_keep_##T(const STEP *step, const T *from, int64_t n, void *to, int64_t at)                          \
    {                                                                                                                  \
        T *wide = (T *)to + at;                                                                                        \
        Tensor words = { .type = step->words, .data = to };                                                            \
        if (step->words)                                                                                               \
            kernels_store_##T(step->kernels, &words, at, from, n);                                                     \
        else if (!dtype_is_narrow(step->own))                                                                          \
            memcpy(wide, from, (size_t)n * sizeof(T));                                                                 \
        else                                                                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                wide[j] = narrowed_##T(step->own, from[j]);                                                            \
    }                                                                                                                  \
    /* An operand of products in the type that they are of, a copy unless it is that already. */                       \
    static const void *factor_##T(Eval *e, const STEP *step, int operand)                                              \
    {                                                                                                                  \
        const Tensor *t = e->in[operand];                                                                              \
        if (step->words && t->type->dtype == BF16)                                                                     \
            return t->data;                                                                                            \
        const T *from = eval_##T(e, operand);                                                                          \
        if (!dtype_is_narrow(step->own) || (!step->words && t->type->dtype == step->own))                              \
            return from;                                                                                               \
        const int64_t n = tensor_elements(t);                                                                          \
        void *to = eval_room(e, (size_t)n, sizeof(T));                                                                 \
        recurrent_keep_##T(step, from, n, to, 0);                                                                      \
        return to;                                                                                                     \
    }                                                                                                                  \
    static const void *direction_##T(const STEP *step, const void *factor, int64_t at)                                 \
    {                                                                                                                  \
        return step->words ? (const void *)((const u16 *)factor + at) : (const void *)((const T *)factor + at);        \
    }                                                                                                                  \
    RECALL recurrent_recall_steps_##T(Eval *e, const Cell *cell, const RecurrentShape *s, const STEP *step)            \
    {                                                                                                                  \
        const size_t n = (size_t)s->hidden;                                                                            \
        const Panel p = {                                                                                              \
            .k = n, .lda = n, .ldb = 1, .b_step = n, .ldc = (size_t)cell->gates * n, .is_bf16 = step->words != NULL    \
        };                                                                                                             \
        return recurrent_recall_##T(e, s, &p, step->r, cell->gates, n * n);                                            \
    }                                                                                                                  \
    STEP recurrent_part_##T(const STEP *whole, const RecurrentShare *share)                                            \
    {                                                                                                                  \
        STEP step = *whole;                                                                                            \
        const int64_t u = share->unit;                                                                                 \
        step.units = share->units;                                                                                     \
        step.scratch += share->worker * RECURRENT_SCRATCH * step.hidden;                                               \
        if (step.bias)                                                                                                 \
            step.bias += u, step.wb += u, step.rb += u;                                                                \
        if (step.peephole)                                                                                             \
            step.peephole += u;                                                                                        \
        step.room += (size_t)share->worker * step.recall->room_each;                                                   \
        return step;                                                                                                   \
    }                                                                                                                  \
    typedef struct Walk_##T {                                                                                          \
        const Cell *cell;                                                                                              \
        const RecurrentShape *s;                                                                                       \
        STEP step;                                                                                                     \
        bool backward;                                                                                                 \
        const int64_t *lengths;                                                                                        \
        const T *xw;                                                                                                   \
        T *y, *hr;                                                                                                     \
        T *gates, *behind; /* null, or what is kept: what gates gave, and cells or what gru's reset gate acts on */    \
        void *met[2];      /* what meets R, in turns */                                                                \
        RECALL recall;                                                                                                 \
        Layout at;                                                                                                     \
    } Walk_##T;                                                                                                        \
    static void take_##T(const void *walk, const RecurrentShare *share, int64_t t)                                     \
    {                                                                                                                  \
        const Walk_##T *w = walk;                                                                                      \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, u = share->unit;                                    \
        STEP step = recurrent_part_##T(&w->step, share);                                                               \
        recurrent_recalled_##T(&w->step, &w->recall, share, w->met[t % 2], w->hr);                                     \
        for (int64_t b = share->begin; b < share->end; b++) {                                                          \
            if (t >= w->lengths[b])                                                                                    \
                continue;                                                                                              \
            const int64_t k = recurrent_place(w->backward, w->lengths[b], t),                                          \
                          row = k * w->at.x.step + b * w->at.x.batch;                                                  \
            step.xw = w->xw + row * wide + u;                                                                          \
            step.hr = w->hr + b * wide + u;                                                                            \
            step.past = step.h = w->step.h + b * n + u;                                                                \
            step.past_c = step.c = w->step.c + b * n + u;                                                              \
            if (w->gates)                                                                                              \
                step.acts = w->gates + row * wide + u;                                                                 \
            if (w->behind && w->cell->states == 1)                                                                     \
                step.linear = w->behind + row * n + u;                                                                 \
            recurrent_step_##T(w->cell)(&step);                                                                        \
            if (w->behind && w->cell->states > 1)                                                                      \
                memcpy(w->behind + row * n + u, step.c, (size_t)share->units * sizeof(T));                             \
            memcpy(w->y + k * w->at.y.step + b * w->at.y.batch + u, step.h, (size_t)share->units * sizeof(T));         \
            recurrent_keep_##T(&step, step.h, share->units, w->met[(t + 1) % 2], b *n + u);                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void run_##T(Eval *e, const Cell *cell, const RecurrentShape *s, STEP step, bool backward,                  \
                        const int64_t *lengths, const T *xw, T *y, T *gates, T *behind)                                \
    {                                                                                                                  \
        const int64_t n = s->hidden, wide = cell->gates * n, states = s->batch * n;                                    \
        Walk_##T w = { cell, s, step,           backward,         lengths,                                             \
                       xw,   y, .gates = gates, .behind = behind, .at = recurrent_layout(step.at, s) };                \
        w.recall = recurrent_recall_steps_##T(e, cell, s, &step);                                                      \
        recurrent_rooms_##T(e, &w.step, &w.recall);                                                                    \
        w.hr = eval_scratch(e, (size_t)(s->batch * wide), sizeof(T));                                                  \
        for (int i = 0; i < 2; i++)                                                                                    \
            w.met[i] = eval_scratch(e, (size_t)states, sizeof(T));                                                     \
        recurrent_keep_##T(&step, step.h, states, w.met[0], 0);                                                        \
        recurrent_walk(e, s, !recurrent_is_whole(cell, step.at), s->steps,                                             \
                       (double)s->steps * (double)states * (double)wide, take_##T, &w);                                \
    }                                                                                                                  \
    void recurrent_rooms_##T(Eval *e, STEP *step, const RECALL *recall)                                                \
    {                                                                                                                  \
        const size_t workers = (size_t)parallel_threads(e->pool);                                                      \
        step->recall = recall;                                                                                         \
        step->scratch = eval_room(e, workers * RECURRENT_SCRATCH * (size_t)step->hidden, sizeof(T));                   \
        step->room = eval_room(e, workers * recall->room_each, sizeof(T));                                             \
    }                                                                                                                  \
    T *recurrent_state_##T(Eval *e, int operand, int64_t d, const RecurrentShape *s)                                   \
    {                                                                                                                  \
        const Strides at = recurrent_layout(e->attr, s).state;                                                         \
        const T *from = operand >= 0 && eval_has(e, operand) ? eval_##T(e, operand) : NULL;                            \
        T *to = eval_scratch(e, (size_t)(s->batch * s->hidden), sizeof(T));                                            \
        for (int64_t b = 0; from && b < s->batch; b++)                                                                 \
            memcpy(to + b * s->hidden, from + d * at.direction + b * at.batch, (size_t)s->hidden * sizeof(T));         \
        return to;                                                                                                     \
    }                                                                                                                  \
    /* The biases of W and R together. */                                                                              \
    static const T *biases_##T(Eval *e, const T *bias, int64_t wide)                                                   \
    {                                                                                                                  \
        T *both = bias ? eval_room(e, (size_t)wide, sizeof(T)) : NULL;                                                 \
        for (int64_t j = 0; bias && j < wide; j++)                                                                     \
            both[j] = bias[j] + bias[wide + j];                                                                        \
        return both;                                                                                                   \
    }                                                                                                                  \
    STEP recurrent_open_##T(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, DType own, T *xw)           \
    {                                                                                                                  \
        const RecurrentAttr *at = e->attr;                                                                             \
        const int64_t n = s->hidden, wide = cell->gates * n;                                                           \
        const T *bias = eval_has(e, 3) ? eval_##T(e, 3) + d * 2 * wide : NULL;                                         \
        const bool in_words = sizeof(T) == sizeof(f32) && recurrent_in_words(e, cell, own);                            \
        const bool peeps = cell->peephole >= 0 && eval_has(e, cell->peephole);                                         \
        Activation *act = eval_scratch(e, 3, sizeof *act);                                                             \
        BUG_IF(e->ir->memory, recurrent_activations(at, cell, (int)d, act, e->scratch));                               \
        const Panel product = { .m = (size_t)(s->steps * s->batch),                                                    \
                                .n = (size_t)wide,                                                                     \
                                .k = (size_t)s->input,                                                                 \
                                .lda = (size_t)s->input,                                                               \
                                .ldb = 1,                                                                              \
                                .b_step = (size_t)s->input,                                                            \
                                .ldc = (size_t)wide,                                                                   \
                                .is_bf16 = in_words };                                                                 \
        STEP step = { .at = at,                                                                                        \
                      .act = act,                                                                                      \
                      .hidden = n,                                                                                     \
                      .wb = bias,                                                                                      \
                      .rb = bias ? bias + wide : NULL,                                                                 \
                      .bias = biases_##T(e, bias, wide),                                                               \
                      .peephole = peeps ? eval_##T(e, cell->peephole) + d * 3 * n : NULL,                              \
                      .own = own,                                                                                      \
                      .words = in_words ? type_tensor(&e->ir->types, BF16, 0, NULL) : NULL,                            \
                      .kernels = e->kernels,                                                                           \
                      .h = recurrent_state_##T(e, cell->first_state, d, s),                                            \
                      .c = recurrent_state_##T(e, cell->states > 1 ? cell->first_state + 1 : -1, d, s) };              \
        step.x = factor_##T(e, &step, 0);                                                                              \
        step.w = direction_##T(&step, factor_##T(e, &step, 1), d * wide * s->input);                                   \
        step.r = direction_##T(&step, factor_##T(e, &step, 2), d * wide * n);                                          \
        if (xw)                                                                                                        \
            recurrent_product_##T(e, &product, step.x, step.w, xw);                                                    \
        return step;                                                                                                   \
    }                                                                                                                  \
    void recurrent_##T(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths)                     \
    {                                                                                                                  \
        const RecurrentAttr *at = e->attr;                                                                             \
        const Layout layout = recurrent_layout(at, s);                                                                 \
        const int64_t n = s->hidden, rows = s->steps * s->batch;                                                       \
        T *y = eval_out_##T(e, 0), *last[2] = { NULL, NULL }, *kept[RECURRENT_KEPT] = { NULL, NULL };                  \
        for (int i = 0; i < cell->states && i + 1 < e->n_out; i++)                                                     \
            last[i] = eval_out_##T(e, i + 1);                                                                          \
        if (e->out[0]->bytes && eval_has(e, 4))                                                                        \
            memset(y, 0, (size_t)(rows * s->directions * n) * sizeof(T));                                              \
        for (int i = 0; i < RECURRENT_KEPT && i + 1 + cell->states < e->n_out; i++) {                                  \
            const int64_t all = rows * s->directions * (i ? n : cell->gates * n);                                      \
            kept[i] = eval_out_##T(e, i + 1 + cell->states);                                                           \
            if (all && eval_has(e, 4))                                                                                 \
                memset(kept[i], 0, (size_t)all * sizeof(T));                                                           \
        }                                                                                                              \
        T *xw = eval_room(e, (size_t)(rows * cell->gates * n), sizeof(T));                                             \
        for (int64_t d = 0; d < s->directions; d++) {                                                                  \
            const STEP step = recurrent_open_##T(e, cell, s, d, e->in[0]->type->dtype, xw);                            \
            run_##T(e, cell, s, step, at->direction == RUN_REVERSE || d == 1, lengths, xw, y + d * layout.y.direction, \
                    kept[0] ? kept[0] + d * rows * cell->gates * n : NULL, kept[1] ? kept[1] + d * rows * n : NULL);   \
            for (int64_t b = 0; b < s->batch; b++)                                                                     \
                for (int i = 0; i < 2; i++)                                                                            \
                    if (last[i])                                                                                       \
                        memcpy(last[i] + d * layout.state.direction + b * layout.state.batch,                          \
                               (i ? step.c : step.h) + b * n, (size_t)n * sizeof(T));                                  \
        }                                                                                                              \
    }
RECURRENT(f32, StepF32, RecallF32)
RECURRENT(f64, StepF64, RecallF64)
#undef RECURRENT
