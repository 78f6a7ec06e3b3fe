#include "ops/attend/attend_kernels.h"

#include "ops/attend/attend_writer.h"

enum { WARP = 32 };

static size_t take(AttendWriter *w)
{
    return own_scratch(w->to, w->rows * w->h.total * (int64_t)(w->own == F64 ? sizeof(f64) : sizeof(f32)));
}

/* ---- words ---- */

static void begin(AttendWriter *w)
{
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    typedef %s T;\n", w->type);
}

static void name(AttendWriter *w, const char *what, size_t at)
{
    text_printf(&w->t, "    T *const %s = (T *)(scratch + %zu);\n", what, at);
}

static const char *narrowed(const AttendWriter *w, const char *value)
{
    return dtype_is_narrow(w->own) ? arena_printf(w->to->arena, "ROUND%d(%s)", w->q, value) : value;
}

/* An element of an operand that lies so; of keys and values the head is that of the query's group. */
static const char *element(const AttendWriter *w, int operand, HeadStrides at, const char *head, const char *step,
                           const char *i)
{
    return arena_printf(w->to->arena, "IN%d(b * %" LD " + %s * %" LD " + %s * %" LD " + %s)", operand, at.batch, head,
                        at.head, step, at.step, i);
}

/* A query as products read it. */
static const char *query_element(const AttendWriter *w, const char *head, const char *step, const char *i)
{
    const char *x = element(w, w->q, w->of_q, head, step, i);
    return w->late ? x : attend_scaled(w, arena_printf(w->to->arena, "(T)%s", x));
}

/* The head and the query of a row of those that share a head of keys, `shared`. */
static const char *head_of(const AttendWriter *w, const char *row)
{
    return arena_printf(w->to->arena, "(shared * %" LD " + %s / %" LD ")", w->group, row, w->h.queries);
}

static const char *query_of(const AttendWriter *w, const char *row)
{
    return arena_printf(w->to->arena, "(%s %% %" LD ")", row, w->h.queries);
}

/* Which keys position lets `query` of `b` see. */
static void print_sight(AttendWriter *w)
{
    const Heads *h = &w->h;
    const int64_t left = attention_left(w->at), right = attention_right(w->at);
    Text *t = &w->t;
    if (w->lengths != NO_MASK) /* one that a refused launch did not write may be anything */
        text_printf(
            t,
            "    const i64 far = (i64)1 << 40, said = IN%d(b), length = said < -far ? -far : said > far ? far : "
            "said, place = query + length - %" LD ";\n",
            w->lengths, h->queries);
    else
        text_printf(t, "    const i64 length = %" LD ", place = query;\n", h->total);
    text_printf(t, "    i64 from = 0, to = length < %" LD " ? length : %" LD ";\n", h->total, h->total);
    if (left >= 0)
        text_printf(t, "    from = place - %" LD " > 0 ? place - %" LD " : 0;\n", left, left);
    if (right >= 0)
        text_printf(t, "    to = place + %" LD " < to ? place + %" LD " : to;\n", right + 1, right + 1);
    text_printf(t, "    if (to <= from)\n        from = to = 0;\n");
}

/* What a row of scores is, of all, or `r` of those of head `shared` of `b`; and what it sees. */
static void print_row(AttendWriter *w, const char *row)
{
    const Heads *h = &w->h;
    text_printf(&w->t, "    const i64 query = %s %% %" LD ", head = %s / %" LD " %% %" LD ", b = %s / %" LD ";\n", row,
                h->queries, row, h->queries, h->q_heads, row, h->queries * h->q_heads);
    print_sight(w);
}

static void print_matrix_row(AttendWriter *w)
{
    text_printf(&w->t, "    const i64 query = %s, head = %s;\n", query_of(w, "r"), head_of(w, "r"));
    print_sight(w);
}

/* Whether the row sees key j. */
static const char *seen(const AttendWriter *w)
{
    const char *mask = attend_mask_element(w);
    if (!mask)
        return "j >= from && j < to";
    return arena_printf(w->to->arena, "j >= from && j < to && j < %" LD " && %s%s", attend_mask_keys(w), mask,
                        attend_mask_chooses(w) ? " != 0" : " != -(T)Q_INF");
}

/* What lies in the scratch for key j of such a row. */
static const char *in_scratch(const AttendWriter *w, size_t at, const char *row, const char *j)
{
    return arena_printf(w->to->arena,
                        "((const T *)(scratch + %zu))[((b * %" LD " + shared) * %" LD " + %s) * %" LD " + %s]", at,
                        w->h.heads, w->group * w->h.queries, row, w->h.total, j);
}

/* A reduction of `value` of each j of [first, end) by a warp: into `to` of all its lanes, which it does not declare. */
static void print_reduction(AttendWriter *w, const char *kind, const char *to, const char *first, const char *end,
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
static void each_key(AttendWriter *w, const char *statement)
{
    text_printf(&w->t, "    for (i64 j = thread; j < %" LD "; j += %d) {\n%s    }\n", w->h.total, WARP, statement);
}

/* ---- scores and probabilities ---- */

/* What becomes of the product of a query and a key. */
static void end_scores(AttendWriter *w, const AttendProduct *p)
{
    const char *mask = attend_mask_element(w);
    (void)p;
    print_matrix_row(w);
    if (w->late)
        text_printf(&w->t, "    sum = %s;\n", attend_scaled(w, "sum"));
    if (w->at->softcap > 0) {
        const char *cap = attend_number(w, (double)w->at->softcap);
        text_printf(&w->t, "    const T tangent = q_tanh(q_div(sum, (T)%s));\n    sum = q_times(tangent, (T)%s);\n",
                    cap, cap);
    }
    if (w->at->softcap > 0 && w->dy) {
        name(w, "tangents", w->tangents);
        text_printf(&w->t, "    tangents[o] = tangent;\n");
    }
    if (mask && !attend_mask_chooses(w))
        text_printf(&w->t, "    if (j < %" LD ")\n        sum = sum + (T)%s;\n", attend_mask_keys(w), mask);
    name(w, "scores", w->scores);
    text_printf(&w->t, "    scores[o] = %s ? sum : -(T)Q_INF;\n", seen(w));
}

/* scores[row, j]: products, scaled, capped, with what a mask adds; -inf where nothing is seen. */
static void print_scores(AttendWriter *w)
{
    attend_product(w, &(AttendProduct){ "scores", w->group * w->h.queries, w->h.total, w->h.size,
                                        query_element(w, head_of(w, "r"), query_of(w, "r"), "i"),
                                        element(w, w->k, w->of_k, "shared", "j", "i"), true, true, end_scores });
}

/* scores[row, ..] become probabilities; of a row that sees nothing they are 0. */
static void print_soften(AttendWriter *w)
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

static void end_values(AttendWriter *w, const AttendProduct *p)
{
    (void)p;
    text_printf(&w->t, "    OUT0(b * %" LD " + %s * %" LD " + %s * %" LD " + j, sum);\n", w->of_y.batch,
                head_of(w, "r"), w->of_y.head, query_of(w, "r"), w->of_y.step);
}

bool kernels_attention(const Node *n, OwnKernels *to)
{
    static const int operands[] = { IN_Q, IN_K, IN_V, IN_MASK, IN_LENGTHS };
    const bool has_past = n->n_in > IN_PAST_KEY && in(n, IN_PAST_KEY);
    AttendWriter w;
    if (!attention_in_blocks(n->attr, in(n, IN_Q)->type->dtype, type_results(n->type), has_past) ||
        !attend_writer_open(&w, n, to, operands))
        return false;
    if (attend_by_tensor(&w))
        return true;
    w.scores = take(&w);
    print_scores(&w);
    print_soften(&w);
    attend_product(&w, &(AttendProduct){ "values", w.group * w.h.queries, w.h.v_size, w.h.total,
                                         narrowed(&w, in_scratch(&w, w.scores, "r", "i")),
                                         element(&w, w.v, w.of_v, "shared", "i", "j"), true, false, end_values });
    return true;
}

/* ---- the way back ---- */

static void end_back(AttendWriter *w, const AttendProduct *p)
{
    (void)p;
    print_matrix_row(w);
    name(w, "back", w->back);
    text_printf(&w->t, "    back[o] = %s ? sum : 0;\n", seen(w));
}

/* back[row, j]: what reaches the probabilities, where something is seen. */
static void print_back(AttendWriter *w)
{
    attend_product(w, &(AttendProduct){ "back", w->group * w->h.queries, w->h.total, w->h.v_size,
                                        element(w, w->dy, w->of_y, head_of(w, "r"), query_of(w, "r"), "i"),
                                        element(w, w->v, w->of_v, "shared", "j", "i"), true, true, end_back });
}

/* back[row, ..] become what reaches the scores. */
static void print_harden(AttendWriter *w)
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
        const char *cap = attend_number(w, (double)w->at->softcap);
        text_printf(&w->t, "        const T tangent = ((const T *)(scratch + %zu))[block * %" LD " + j];\n",
                    w->tangents, w->h.total);
        text_printf(&w->t, "        const T square = tangent * tangent;\n        d = q_times(d, (T)%s);\n", cap);
        text_printf(&w->t, "        d = d * (1 - square);\n        d = q_div(d, (T)%s);\n", cap);
    }
    if (w->late && !dtype_is_narrow(w->own))
        value = attend_scaled(w, value);
    text_printf(&w->t, "        s[j] = %s;\n    }\n", narrowed(w, value));
    own_kernel_close(w->to, "harden", w->rows, WARP, &w->t);
}

static void end_queries(AttendWriter *w, const AttendProduct *p)
{
    (void)p;
    text_printf(&w->t, "    OUT0(b * %" LD " + %s * %" LD " + %s * %" LD " + j, %s);\n", w->of_q.batch, head_of(w, "r"),
                w->of_q.head, query_of(w, "r"), w->of_q.step,
                !w->late || dtype_is_narrow(w->own) ? attend_scaled(w, "sum") : "sum");
}

static void print_queries_back(AttendWriter *w)
{
    attend_product(w, &(AttendProduct){ "queries", w->group * w->h.queries, w->h.size, w->h.total,
                                        in_scratch(w, w->back, "r", "i"), element(w, w->k, w->of_k, "shared", "i", "j"),
                                        true, false, end_queries });
}

/* Keys and values gather from all rows that share their head what reached key `r` in them with element `j` of what they had there. */
static void end_keys(AttendWriter *w, const AttendProduct *p)
{
    (void)p;
    text_printf(&w->t, "    OUT1(b * %" LD " + shared * %" LD " + r * %" LD " + j, %s);\n", w->of_k.batch, w->of_k.head,
                w->of_k.step, dtype_is_narrow(w->own) ? attend_scaled(w, "sum") : "sum");
}

static void end_gathered_values(AttendWriter *w, const AttendProduct *p)
{
    (void)p;
    text_printf(&w->t, "    OUT2(b * %" LD " + shared * %" LD " + r * %" LD " + j, sum);\n", w->of_v.batch,
                w->of_v.head, w->of_v.step);
}

static void print_keys_back(AttendWriter *w)
{
    attend_product(
        w, &(AttendProduct){ "keys", w->h.total, w->h.size, w->group * w->h.queries, in_scratch(w, w->back, "i", "r"),
                             query_element(w, head_of(w, "i"), query_of(w, "i"), "j"), false, false, end_keys });
}

static void print_values_back(AttendWriter *w)
{
    attend_product(w, &(AttendProduct){ "values", w->h.total, w->h.v_size, w->group * w->h.queries,
                                        narrowed(w, in_scratch(w, w->scores, "i", "r")),
                                        element(w, w->dy, w->of_y, head_of(w, "i"), query_of(w, "i"), "j"), false,
                                        false, end_gathered_values });
}

bool kernels_attention_grad(const Node *n, OwnKernels *to)
{
    static const int operands[] = { GRAD_Q, GRAD_K, GRAD_V, GRAD_MASK, GRAD_LENGTHS };
    AttendWriter w;
    if (!attention_grad_in_blocks(n->attr, in(n, GRAD_Q)->type->dtype, type_results(n->type)) ||
        !attend_writer_open(&w, n, to, operands))
        return false;
    w.dy = GRAD_DY;
    if (attend_back_by_tensor(&w))
        return true;
    w.scores = take(&w);
    w.back = take(&w);
    if (w.at->softcap > 0)
        w.tangents = take(&w);
    print_scores(&w);
    print_soften(&w);
    print_back(&w);
    print_harden(&w);
    print_queries_back(&w);
    print_keys_back(&w);
    print_values_back(&w);
    return true;
}
