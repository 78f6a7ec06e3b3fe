#include "ops/attend/attend_kernels.h"

#include <inttypes.h>

#include "ops/attend/attention_blocks.h"
#include "ops/kernels/panel.h"

enum { NO_MASK = -1, WARP = 32 };

/* A call, and what its kernels are written from.  A row is a query of a head of a batch. */
typedef struct Writer {
    const Node *n;
    OwnKernels *to;
    const AttentionAttr *at;
    Heads h;
    DType own;
    const char *type; /* of the arithmetic */
    int q, k, v, dy, mask, lengths;
    HeadStrides of_q, of_k, of_v, of_y;
    int64_t rows, group;           /* of all; heads of queries that share one of keys */
    size_t scores, back, tangents; /* in the scratch */
    bool late;
    Text t;
} Writer;

#define LD PRId64

static int there(const Node *n, int operand)
{
    return operand < n->n_in && in(n, operand) ? operand : NO_MASK;
}

static bool open_writer(Writer *w, const Node *n, OwnKernels *to, const int *operands)
{
    const Type *q = in(n, operands[0])->type;
    *w = (Writer){ .n = n, .to = to, .at = n->attr, .own = q->dtype, .q = operands[0], .k = operands[1] };
    w->v = operands[2];
    w->mask = there(n, operands[3]);
    w->lengths = there(n, operands[4]);
    w->h = heads_of(n->attr, q, in(n, w->k)->type, in(n, w->v)->type, 0);
    const Heads *h = &w->h;
    if (!h->heads || !h->total || !h->queries || !h->size || !h->v_size)
        return false;
    w->type = q->dtype == F64 ? "f64" : "f32";
    w->of_q = attend_strides(q->rank, h->q_heads, h->queries, h->size);
    w->of_k = attend_strides(q->rank, h->heads, h->total, h->size);
    w->of_v = attend_strides(q->rank, h->heads, h->total, h->v_size);
    w->of_y = attend_strides(q->rank, h->q_heads, h->queries, h->v_size);
    w->rows = h->batch * h->q_heads * h->queries;
    w->group = h->q_heads / h->heads;
    w->late = attention_scales_products(w->at, w->own);
    return true;
}

static size_t take(Writer *w)
{
    return own_scratch(w->to, w->rows * w->h.total * (int64_t)(w->own == F64 ? sizeof(f64) : sizeof(f32)));
}

/* ---- words ---- */

static void begin(Writer *w)
{
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    typedef %s T;\n", w->type);
}

static void name(Writer *w, const char *what, size_t at)
{
    text_printf(&w->t, "    T *const %s = (T *)(scratch + %zu);\n", what, at);
}

static const char *number(const Writer *w, double v)
{
    return w->own == F64 ? own_f64(w->to, v) : own_f32(w->to, v);
}

/* A value scaled. */
static const char *scaled(const Writer *w, const char *value)
{
    const char *by = number(w, attention_scale(w->at, &w->h));
    return arena_printf(w->to->arena, w->at->scaled == SCALE_QUOTIENTS ? "q_div(%s, (T)%s)" : "q_times(%s, (T)%s)",
                        value, by);
}

static const char *narrowed(const Writer *w, const char *value)
{
    return dtype_is_narrow(w->own) ? arena_printf(w->to->arena, "ROUND%d(%s)", w->q, value) : value;
}

/* An element of an operand that lies so; of keys and values the head is that of the query's group. */
static const char *element(const Writer *w, int operand, HeadStrides at, const char *head, const char *step,
                           const char *i)
{
    return arena_printf(w->to->arena, "IN%d(b * %" LD " + %s * %" LD " + %s * %" LD " + %s)", operand, at.batch, head,
                        at.head, step, at.step, i);
}

/* A query as products read it. */
static const char *query_element(const Writer *w, const char *head, const char *step, const char *i)
{
    const char *x = element(w, w->q, w->of_q, head, step, i);
    return w->late ? x : scaled(w, arena_printf(w->to->arena, "(T)%s", x));
}

/* What a row is, and which keys position lets it see. */
static void print_row(Writer *w, const char *row)
{
    const Heads *h = &w->h;
    const int64_t left = attention_left(w->at), right = attention_right(w->at);
    Text *t = &w->t;
    text_printf(t, "    const i64 row = %s;\n", row);
    text_printf(t, "    const i64 query = row %% %" LD ", head = row / %" LD " %% %" LD ", b = row / %" LD ";\n",
                h->queries, h->queries, h->q_heads, h->queries * h->q_heads);
    if (w->lengths != NO_MASK)
        text_printf(t, "    const i64 length = IN%d(b), place = query + length - %" LD ";\n", w->lengths, h->queries);
    else
        text_printf(t, "    const i64 length = %" LD ", place = query;\n", h->total);
    text_printf(t, "    i64 from = 0, to = length < %" LD " ? length : %" LD ";\n", h->total, h->total);
    if (left >= 0)
        text_printf(t, "    from = place - %" LD " > 0 ? place - %" LD " : 0;\n", left, left);
    if (right >= 0)
        text_printf(t, "    to = place + %" LD " < to ? place + %" LD " : to;\n", right + 1, right + 1);
    text_printf(t, "    if (to <= from)\n        from = to = 0;\n");
}

/* Where the mask of key j lies; null: there is no mask. */
static const char *mask_element(const Writer *w)
{
    int64_t step = 1, strides[4];
    if (w->mask == NO_MASK)
        return NULL;
    const Type *t = in(w->n, w->mask)->type;
    for (int i = 0; i < 4; i++) {
        const int64_t extent = i < t->rank ? t->dims[t->rank - 1 - i] : 1;
        strides[3 - i] = i == 0 ? t->rank > 0 : extent == 1 ? 0 : step;
        step *= extent;
    }
    return arena_printf(w->to->arena, "IN%d(b * %" LD " + head * %" LD " + query * %" LD " + j * %" LD ")", w->mask,
                        strides[0], strides[1], strides[2], strides[3]);
}

static int64_t mask_keys(const Writer *w)
{
    const Type *t = w->mask == NO_MASK ? NULL : in(w->n, w->mask)->type;
    return t && t->rank && t->dims[t->rank - 1] < w->h.total ? t->dims[t->rank - 1] : w->h.total;
}

static bool is_choice(const Writer *w)
{
    return w->mask != NO_MASK && in(w->n, w->mask)->type->dtype == BOOL;
}

/* Whether the row sees key j. */
static const char *seen(const Writer *w)
{
    const char *mask = mask_element(w);
    if (!mask)
        return "j >= from && j < to";
    return arena_printf(w->to->arena, "j >= from && j < to && j < %" LD " && %s%s", mask_keys(w), mask,
                        is_choice(w) ? " != 0" : " != -(T)Q_INF");
}

/* A sum over n, as contractions have it; x and y say what element i of the factors is. */
static void print_chain(Writer *w, int64_t n, const char *x, const char *y)
{
    Text *t = &w->t;
    text_printf(t, "    T sum = 0;\n");
    if (n > PANEL_SEGMENT)
        text_printf(t, "    sum_counter_%s segments = { 0 };\n", w->type);
    text_printf(t, "    for (i64 i = 0; i < %" LD "; i++) {\n", n);
    if (n > PANEL_SEGMENT)
        text_printf(t,
                    "        if (i && i %% %d == 0) {\n            sum_push_%s(&segments, sum);\n"
                    "            sum = 0;\n        }\n",
                    PANEL_SEGMENT, w->type);
    text_printf(t, "        const T x = %s;\n        const T y = %s;\n        sum = fma_%s(x, y, sum);\n    }\n", x, y,
                w->type);
    if (n > PANEL_SEGMENT)
        text_printf(t, "    sum_push_%s(&segments, sum);\n    sum = sum_total_%s(&segments);\n", w->type, w->type);
}

/* A reduction of `value` of each j of [first, end) by a warp: into `to` of all its lanes, which it does not declare. */
static void print_reduction(Writer *w, const char *kind, const char *to, const char *first, const char *end,
                            const char *value)
{
    Text *t = &w->t;
    text_printf(t, "    {\n    %s_counter_%s all;\n    all.count = 0;\n", kind, w->type);
    text_printf(t, "    for (i64 base = %s; base < %s; base += 1024) {\n        T a[8];\n", first, end);
    text_printf(t, "        %s_clear_%s(a);\n", kind, w->type);
    text_printf(t, "        for (i64 c = 0; c < 1024; c += 256)\n            for (u32 e = 0; e < 8; e++) {\n");
    text_printf(t, "                const i64 j = base + c + 8 * thread + e;\n                if (j < %s)\n", end);
    text_printf(t, "                    a[e] = %s_add_%s(a[e], %s);\n            }\n", kind, w->type, value);
    text_printf(t, "        %s_push_%s(&all, %s_warp_%s(a));\n    }\n", kind, w->type, kind, w->type);
    text_printf(t, "    %s = %s_total_%s(&all);\n    }\n", to, kind, w->type);
}

/* Some statement for each j of a row, by a warp. */
static void each_key(Writer *w, const char *statement)
{
    text_printf(&w->t, "    for (i64 j = thread; j < %" LD "; j += %d) {\n%s    }\n", w->h.total, WARP, statement);
}

/* ---- scores and probabilities ---- */

/* scores[row, j]: products, scaled, capped, with what a mask adds; -inf where nothing is seen. */
static void print_scores(Writer *w)
{
    const char *head = arena_printf(w->to->arena, "(head / %" LD ")", w->group), *mask = mask_element(w);
    begin(w);
    name(w, "scores", w->scores);
    print_row(w, arena_printf(w->to->arena, "o / %" LD, w->h.total));
    text_printf(&w->t, "    const i64 j = o %% %" LD ";\n", w->h.total);
    print_chain(w, w->h.size, query_element(w, "head", "query", "i"), element(w, w->k, w->of_k, head, "j", "i"));
    if (w->late)
        text_printf(&w->t, "    sum = %s;\n", scaled(w, "sum"));
    if (w->at->softcap > 0) {
        const char *cap = number(w, (double)w->at->softcap);
        text_printf(&w->t, "    const T tangent = q_tanh(q_div(sum, (T)%s));\n    sum = q_times(tangent, (T)%s);\n",
                    cap, cap);
    }
    if (w->at->softcap > 0 && w->dy) {
        name(w, "tangents", w->tangents);
        text_printf(&w->t, "    tangents[o] = tangent;\n");
    }
    if (mask && !is_choice(w))
        text_printf(&w->t, "    if (j < %" LD ")\n        sum = sum + (T)%s;\n", mask_keys(w), mask);
    text_printf(&w->t, "    scores[o] = %s ? sum : -(T)Q_INF;\n", seen(w));
    own_kernel_close(w->to, "scores", w->rows * w->h.total, 0, &w->t);
}

/* scores[row, ..] become probabilities; of a row that sees nothing they are 0. */
static void print_soften(Writer *w)
{
    const char *total = arena_printf(w->to->arena, "%" LD, w->h.total);
    begin(w);
    text_printf(&w->t, "    T *const s = (T *)(scratch + %zu) + block * %" LD ";\n", w->scores, w->h.total);
    print_row(w, "block");
    text_printf(&w->t, "    T any = 0, most, sum;\n");
    print_reduction(w, "max", "any", "0", total, arena_printf(w->to->arena, "(%s ? (T)1 : (T)0)", seen(w)));
    text_printf(&w->t, "    if (any != 1) {\n    ");
    each_key(w, "        s[j] = 0;\n");
    text_printf(&w->t, "    return;\n    }\n");
    print_reduction(w, "max", "most", "from", "to", "s[j]");
    each_key(w, "        s[j] = j >= from && j < to ? q_exp(s[j] - most) : 0;\n");
    text_printf(&w->t, "    __syncthreads();\n");
    print_reduction(w, "sum", "sum", "0", total, "s[j]");
    each_key(w, "        s[j] = sum != sum ? sum : j >= from && j < to ? q_div(s[j], sum) : s[j];\n");
    own_kernel_close(w->to, "soften", w->rows, WARP, &w->t);
}

/* ---- forward ---- */

bool kernels_attention(const Node *n, OwnKernels *to)
{
    static const int operands[] = { IN_Q, IN_K, IN_V, IN_MASK, IN_LENGTHS };
    const bool has_past = there(n, IN_PAST_KEY) != NO_MASK;
    Writer w;
    if (!attention_in_blocks(n->attr, in(n, IN_Q)->type->dtype, type_results(n->type), has_past) ||
        !open_writer(&w, n, to, operands))
        return false;
    w.scores = take(&w);
    print_scores(&w);
    print_soften(&w);
    begin(&w);
    name(&w, "scores", w.scores);
    print_row(&w, arena_printf(to->arena, "o / %" LD, w.h.v_size));
    text_printf(&w.t, "    const i64 j = o %% %" LD ";\n", w.h.v_size);
    print_chain(&w, w.h.total, narrowed(&w, arena_printf(to->arena, "scores[row * %" LD " + i]", w.h.total)),
                element(&w, w.v, w.of_v, arena_printf(to->arena, "(head / %" LD ")", w.group), "i", "j"));
    text_printf(&w.t, "    OUT0(b * %" LD " + head * %" LD " + query * %" LD " + j, sum);\n", w.of_y.batch, w.of_y.head,
                w.of_y.step);
    own_kernel_close(to, "values", w.rows * w.h.v_size, 0, &w.t);
    return true;
}

/* ---- the way back ---- */

/* back[row, j]: what reaches the probabilities, where something is seen. */
static void print_back(Writer *w)
{
    const char *head = arena_printf(w->to->arena, "(head / %" LD ")", w->group);
    begin(w);
    name(w, "back", w->back);
    print_row(w, arena_printf(w->to->arena, "o / %" LD, w->h.total));
    text_printf(&w->t, "    const i64 j = o %% %" LD ";\n", w->h.total);
    print_chain(w, w->h.v_size, element(w, w->dy, w->of_y, "head", "query", "i"),
                element(w, w->v, w->of_v, head, "j", "i"));
    text_printf(&w->t, "    back[o] = %s ? sum : 0;\n", seen(w));
    own_kernel_close(w->to, "back", w->rows * w->h.total, 0, &w->t);
}

/* back[row, ..] become what reaches the scores. */
static void print_harden(Writer *w)
{
    const char *total = arena_printf(w->to->arena, "%" LD, w->h.total), *value = "d";
    begin(w);
    text_printf(&w->t, "    const T *const p = (T *)(scratch + %zu) + block * %" LD ";\n", w->scores, w->h.total);
    text_printf(&w->t, "    T *const s = (T *)(scratch + %zu) + block * %" LD ";\n", w->back, w->h.total);
    print_row(w, "block");
    text_printf(&w->t, "    T sum;\n");
    print_reduction(w, "sum", "sum", "0", total, "q_times(p[j], s[j])");
    text_printf(&w->t, "    for (i64 j = thread; j < %" LD "; j += %d) {\n", w->h.total, WARP);
    text_printf(&w->t, "        const T less = s[j] - sum, all = q_times(p[j], less);\n");
    text_printf(&w->t, "        T d = %s ? all : 0;\n", seen(w));
    if (w->at->softcap > 0) {
        const char *cap = number(w, (double)w->at->softcap);
        text_printf(&w->t, "        const T tangent = ((const T *)(scratch + %zu))[block * %" LD " + j];\n",
                    w->tangents, w->h.total);
        text_printf(&w->t, "        const T square = tangent * tangent;\n        d = q_times(d, (T)%s);\n", cap);
        text_printf(&w->t, "        d = d * (1 - square);\n        d = q_div(d, (T)%s);\n", cap);
    }
    if (w->late && !dtype_is_narrow(w->own))
        value = scaled(w, value);
    text_printf(&w->t, "        s[j] = %s;\n    }\n", narrowed(w, value));
    own_kernel_close(w->to, "harden", w->rows, WARP, &w->t);
}

static void print_queries_back(Writer *w)
{
    const char *head = arena_printf(w->to->arena, "(head / %" LD ")", w->group);
    begin(w);
    name(w, "back", w->back);
    print_row(w, arena_printf(w->to->arena, "o / %" LD, w->h.size));
    text_printf(&w->t, "    const i64 j = o %% %" LD ";\n", w->h.size);
    print_chain(w, w->h.total, arena_printf(w->to->arena, "back[row * %" LD " + i]", w->h.total),
                element(w, w->k, w->of_k, head, "i", "j"));
    text_printf(&w->t, "    OUT0(b * %" LD " + head * %" LD " + query * %" LD " + j, %s);\n", w->of_q.batch,
                w->of_q.head, w->of_q.step, !w->late || dtype_is_narrow(w->own) ? scaled(w, "sum") : "sum");
    own_kernel_close(w->to, "queries", w->rows * w->h.size, 0, &w->t);
}

/* Sums over all rows that share a head of keys, of what reached key `j` in them with element `c` of what they had there. */
static void print_gather(Writer *w, const char *part, size_t from, int64_t size, bool keys)
{
    const Heads *h = &w->h;
    const int64_t rows = w->group * h->queries;
    const HeadStrides at = keys ? w->of_k : w->of_v;
    const char *head = arena_printf(w->to->arena, "(head * %" LD " + i / %" LD ")", w->group, h->queries),
               *query = arena_printf(w->to->arena, "(i %% %" LD ")", h->queries);
    const char *sent = arena_printf(w->to->arena, "sent[((b * %" LD " + head) * %" LD " + i) * %" LD " + j]", h->heads,
                                    rows, h->total);
    begin(w);
    name(w, "sent", from);
    text_printf(&w->t, "    const i64 c = o %% %" LD ", j = o / %" LD " %% %" LD ";\n", size, size, h->total);
    text_printf(&w->t, "    const i64 head = o / %" LD " %% %" LD ", b = o / %" LD ";\n", size * h->total, h->heads,
                size * h->total * h->heads);
    print_chain(w, rows, keys ? sent : narrowed(w, sent),
                keys ? query_element(w, head, query, "c") : element(w, w->dy, w->of_y, head, query, "c"));
    text_printf(&w->t, "    OUT%d(b * %" LD " + head * %" LD " + j * %" LD " + c, %s);\n", keys ? 1 : 2, at.batch,
                at.head, at.step, keys && dtype_is_narrow(w->own) ? scaled(w, "sum") : "sum");
    own_kernel_close(w->to, part, h->batch * h->heads * h->total * size, 0, &w->t);
}

bool kernels_attention_grad(const Node *n, OwnKernels *to)
{
    static const int operands[] = { GRAD_Q, GRAD_K, GRAD_V, GRAD_MASK, GRAD_LENGTHS };
    Writer w;
    if (!attention_grad_in_blocks(n->attr, in(n, GRAD_Q)->type->dtype, type_results(n->type)) ||
        !open_writer(&w, n, to, operands))
        return false;
    w.dy = GRAD_DY;
    w.scores = take(&w);
    w.back = take(&w);
    if (w.at->softcap > 0)
        w.tangents = take(&w);
    print_scores(&w);
    print_soften(&w);
    print_back(&w);
    print_harden(&w);
    print_queries_back(&w);
    print_gather(&w, "keys", w.back, w.h.size, true);
    print_gather(&w, "values", w.scores, w.h.v_size, false);
    return true;
}
