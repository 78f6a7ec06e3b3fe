/* label: slow */
/* Every grain, source of the scale and format of weights, in products of every kind: it runs, and each element has the number
 * that a plain loop over those who share its scale gives it, or it is refused with a reason and with what to write
 * instead.  Learned scales have the gradient of LSQ's formula in f64. */
#include "ops/control/reverse.h"
#include "support/grains.h"

/* Who shares a scale: the number of the scale of each element, in any order. */
static int keys_of(const Product *p, const Grain *g, const Type *t, int *key)
{
    int64_t seen[MOST];
    int n = 0;
    for (int64_t i = 0; i < type_elements(t); i++) {
        int64_t rest = i, id = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            int64_t at = rest % t->dims[d];
            rest /= t->dims[d];
            const int size = d == p->channel ? g->channels : d == p->sum ? g->sums : g->sums ? 1 : 0;
            id = id * 64 + (size ? at / size : 0);
        }
        for (key[i] = 0; key[i] < n && seen[key[i]] != id; key[i]++)
            ;
        if (key[i] == n)
            seen[n++] = id;
    }
    return n;
}

/* Of each scale the mean size of what is larger than 0.7 of the mean size (twn). */
static void expect_kept(const Case *k, const Loop *l, const Tensor *w, const Tensor *got)
{
    static double sum[MOST], count[MOST];
    memset(sum, 0, sizeof sum);
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const bool kept = fabs(at(w, i)) > 0.7 * l->sum[l->key[i]] / l->count[l->key[i]];
        sum[l->key[i]] += kept ? fabs(at(w, i)) : 0;
        count[l->key[i]] += kept;
    }
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const double edge = 0.7 * l->sum[l->key[i]] / l->count[l->key[i]], s = sum[l->key[i]] / count[l->key[i]];
        const double want = fabs(at(w, i)) <= edge ? 0 : copysign(s, at(w, i));
        require(fabs(at(got, i) - want) <= 2e-6 * s, "%s: element %d is %.9g, not %.9g\n%s", k->spec, (int)i,
                at(got, i), want, k->p->text);
    }
}

/* The mean of the sizes is where -1, 0 and 1 lie: of the order of its sum nothing is said. */
static void expect_ternary(const Case *k, const Loop *l, const Tensor *w, const Tensor *got)
{
    if (quantizer_says(&k->read.of[OPERAND_W], QUANT_SOURCE, SOURCE_TWN)) {
        expect_kept(k, l, w, got);
        return;
    }
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const int key = l->key[i];
        const double s = fmax(l->sum[key] / l->count[key], 1e-5), v = at(w, i) / s;
        const double want = fmin(fmax(rint(v), -1), 1) * s;
        if (fabs(fabs(v) - 0.5) > 1e-6)
            require(fabs(at(got, i) - want) <= 1e-6 * s, "%s: element %d is %.9g, not %.9g\n%s", k->spec, (int)i,
                    at(got, i), want, k->p->text);
    }
}

/* Ranges that are looked for (unit/range_search has how): by sigma they are those of who shares a scale; by mse nobody errs
 * more than with the largest. */
static bool is_searched(const Quantizer *q)
{
    const QuantValue v = q->part[QUANT_SOURCE].value;
    return v == SOURCE_MSE || v == SOURCE_KL || v == SOURCE_HQO || v == SOURCE_SIGMA;
}

static void expect_searched(const Case *k, const Loop *l, const Tensor *w, const Tensor *got, double least,
                            double largest)
{
    const Quantizer *q = &k->read.of[OPERAND_W];
    const bool sym = q->part[QUANT_ZERO].value == ZERO_SYM;
    static double squares[MOST], error[MOST], other[MOST];
    memset(squares, 0, sizeof squares);
    memset(error, 0, sizeof error);
    memset(other, 0, sizeof other);
    for (int64_t i = 0; i < tensor_elements(w); i++)
        squares[l->key[i]] += at(w, i) * at(w, i) / l->count[l->key[i]];
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const int key = l->key[i];
        const double mean = l->sum[key] / l->count[key];
        double lo = l->lo[key], hi = l->hi[key], all = hi - lo;
        if (q->part[QUANT_SOURCE].value == SOURCE_SIGMA) {
            const double end = mean + 3 * sqrt(fmax(squares[key] - mean * mean, 0));
            lo = fmax(lo, -end);
            hi = fmin(hi, end);
        }
        const double s = sym ? fmax(-lo, hi) / largest : (hi - lo) / (largest - least);
        const double z = sym ? 0 : fmin(fmax(rint(least - lo / s), least), largest);
        const double v = quantizer_is_float(q) ? few_floats_nearest(q->format, at(w, i) / s) : rint(at(w, i) / s);
        const double want = s * fmin(fmax(v, least - z), largest - z);
        error[key] += (at(got, i) - at(w, i)) * (at(got, i) - at(w, i));
        other[key] += (want - at(w, i)) * (want - at(w, i));
        if (q->part[QUANT_SOURCE].value == SOURCE_SIGMA)
            require(fabs(at(got, i) - want) <= s * (quantizer_is_float(q) ? 1 + fabs(v) / 2 : 2.001),
                    "%s: element %d is %.9g, not %.9g\n", k->spec, (int)i, at(got, i), want);
        require(fabs(at(got, i)) <= all + s, "%s: element %d is %.9g of %.9g\n", k->spec, (int)i, at(got, i), at(w, i));
    }
    for (int key = 0; key < l->n && q->part[QUANT_SOURCE].value == SOURCE_MSE; key++)
        require(error[key] <= other[key] * 1.01 + 1e-12, "%s: scale %d errs by %g, with the largest by %g\n", k->spec,
                key, error[key], other[key]);
}

static void expect_ranges(Case *k, const Loop *l, const Tensor *w, const Tensor *got, double least, double largest)
{
    const Quantizer *q = &k->read.of[OPERAND_W];
    const bool sym = q->part[QUANT_ZERO].value == ZERO_SYM, said = q->part[QUANT_SOURCE].value == SOURCE_CONST;
    if (q->format == FORMAT_TERNARY) {
        expect_ternary(k, l, w, got);
        return;
    }
    if (is_searched(q)) {
        expect_searched(k, l, w, got, least, largest);
        return;
    }
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const float lo = (float)l->lo[l->key[i]], hi = (float)l->hi[l->key[i]];
        float s = sym ? fmaxf(-lo, hi) / (float)largest : (hi - lo) / (float)(largest - least), z = 0;
        if (!sym)
            z = (float)fmin(fmax((double)rintf((float)least - lo / s), least), largest);
        if (said)
            s = 0.0625f, z = 0;
        const double want = quantized(q, (float)at(w, i), s, z, least, largest);
        require(at(got, i) == want, "%s: element %d is %.9g, not %.9g\n%s", k->spec, (int)i, at(got, i), want,
                k->p->text);
    }
}

/* What a code of v stands for, within the codes; and how far that jumps where v is next to a tie. */
static double nearest(const Quantizer *q, double v)
{
    return quantizer_is_float(q) ? few_floats_nearest(q->format, v) : rint(v);
}

static double jump(const Quantizer *q, double v)
{
    const double off = 1e-6 * (1 + fabs(v));
    return nearest(q, v + off) - nearest(q, v - off);
}

/* Gradients of the logarithms of scales: what reaches element i of the weight is 1 + i / 64. */
static void learn(const Case *k, Loop *l, const Tensor *w, const Tensor *logs, const int *of_state, double least,
                  double largest)
{
    const Quantizer *q = &k->read.of[OPERAND_W];
    int most = 0;
    memset(l->gradient, 0, sizeof l->gradient);
    memset(l->within, 0, sizeof l->within);
    for (int i = 0; i < l->n; i++)
        most = l->count[i] > most ? l->count[i] : most;
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const int key = l->key[i];
        const double s = exp2(at(logs, of_state[key])), v = at(w, i) / s, dy = 1 + (double)i / 64;
        const bool below = v<least, above = v> largest; /* mask=v */
        const double slope = below ? least : above ? largest : nearest(q, v) - v;
        const double factor = dy * s * log(2) / sqrt((double)most * largest);
        l->gradient[key] += factor * slope;
        l->within[key] += factor * (2e-5 * fabs(slope) + 1e-6 * fabs(v) + jump(q, v));
    }
}

/* Which element of the state is the scale of a key: scales lie as the blocks of the weight do. */
static void states_of(const Case *k, const Loop *l, const Type *t, const Type *scales, int *of_state)
{
    for (int64_t i = 0; i < type_elements(t); i++) {
        int64_t rest = i, stride = 1, index = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            const int64_t at = rest % t->dims[d];
            rest /= t->dims[d];
            if (scales->rank == 1 && d == k->p->channel)
                index = at;
            if (scales->rank != t->rank)
                continue;
            const int64_t size = d == k->p->channel ? k->grain->channels : d == k->p->sum ? k->grain->sums : 1;
            index += at / size * stride;
            stride *= scales->dims[d];
        }
        of_state[l->key[i]] = (int)index;
    }
}

static Node *named(Graph *g, const char *part)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strstr(g->inputs[i]->name, part))
            return g->inputs[i];
    return NULL;
}

/* The gradient of a state, when element i of the numbers gets 1 + i / 64. */
static Node *gradient_of(Case *k, Node *state)
{
    Tensor *weights = tensor_new(&k->c->arena, k->number->type);
    Build b = build_at_end(k->g);
    ReverseResult r;
    for (int64_t i = 0; i < tensor_elements(weights); i++)
        tensor_set_f64(weights, i, 1 + (double)i / 64);
    b.before = k->g->last;
    Node *dy = build_const(&b, weights);
    const ReverseQuery q = { .n_y = 1, .y = &k->number, .dy = &dy, .n_x = 1, .x = &state, .narrow = true };
    assert_int_equal(reverse(&b, &q, &k->c->arena, &r), OK);
    return r.dx[0];
}

static const Tensor *given(const Case *k, const Tensor *const *inputs, const Node *input)
{
    for (size_t i = 0; i < k->g->n_inputs; i++)
        if (k->g->inputs[i] == input)
            return inputs[i];
    return NULL;
}

/* Where each scale begins, and what comes back to it. */
static void expect_states(const Case *k, const Loop *l, const int *of_state, Tensor *const *out, double largest)
{
    const Quantizer *q = &k->read.of[OPERAND_W];
    const bool seen = q->part[QUANT_SOURCE].value == SOURCE_STATS; /* and stays */
    for (int i = 0; i < l->n; i++) {
        const double size =
            quantizer_is_float(q) ? fmax(-l->lo[i], l->hi[i]) / largest : 2 * l->sum[i] / l->count[i] / sqrt(largest);
        const double want = seen ? 1 : log2(size), got = at(out[1], of_state[i]);
        require(fabs(got - want) < 1e-5, "%s: scale %d begins at %g, not %g\n%s", k->spec, i, got, want, k->p->text);
        const double comes = at(out[2], of_state[i]);
        require(fabs(comes - l->gradient[i]) <= l->within[i], "%s: %g comes to scale %d, not %g\n%s", k->spec, comes, i,
                l->gradient[i], k->p->text);
    }
}

static void expect_learned(Case *k, Loop *l, double least, double largest)
{
    const Quantizer *q = &k->read.of[OPERAND_W];
    Node *state = named(k->g, "step_size/w"), *w = named(k->g, "w"), *first = NULL;
    int of_state[MOST];
    Tensor *out[3];
    const Tensor *inputs[8];
    for (int i = 0; i < graph_n_results(k->g); i++)
        if (graph_result_name(k->g, i) &&
            (strstr(graph_result_name(k->g, i), "step_size/w") || strstr(graph_result_name(k->g, i), "observed/w")))
            first = graph_result(k->g, i);
    require(state && first, "%s: no scale is learned\n", k->spec);
    graph_return(k->g, 2, (Node *[]){ k->number, first }, NULL);
    run(k, 3, (Node *[]){ k->number, first, gradient_of(k, state) }, out, inputs);
    const Tensor *values = given(k, inputs, w), *logs = given(k, inputs, state);
    reduce(l, values);
    states_of(k, l, w->type, state->type, of_state);
    learn(k, l, values, logs, of_state, least, largest);
    expect_states(k, l, of_state, out, largest);
    for (int64_t i = 0; i < tensor_elements(values); i++) {
        const double s = exp2(at(logs, of_state[l->key[i]])), v = at(values, i) / s;
        const double want = fmin(fmax(nearest(q, v), least), largest) * s;
        if (jump(q, v) == 0 && fabs(fabs(v - floor(v)) - 0.5) > 1e-4)
            require(fabs(at(out[0], i) - want) <= 1e-5 * s * fmax(1, fabs(v)), "%s: element %d is %g, not %g\n",
                    k->spec, (int)i, at(out[0], i), want);
    }
    for (int i = 0; i < 3; i++)
        tensor_drop(&k->c->heap, out[i]);
}

/* Those of unit/passes/learned. */
static bool has_own_formulas(const Quantizer *q)
{
    const QuantValue source = q->part[QUANT_SOURCE].value;
    return source == SOURCE_TQT || source == SOURCE_LSQ_PLUS || source == SOURCE_PACT || source == SOURCE_DOREFA ||
           q->format == FORMAT_BINARY;
}

static void check_weight(Case *k, bool must)
{
    static Loop l;
    double least, largest;
    const Tensor *inputs[8], *w = NULL;
    Tensor *out[1];
    if (place(k, "w") != OK) {
        require(!must, "%s is refused: %s\n%s", k->spec, k->c->last, k->p->text);
        return;
    }
    const Quantizer q = k->read.of[OPERAND_W];
    ends_of(q, &least, &largest);
    l.n = keys_of(k->p, k->grain, named(k->g, "w")->type, l.key);
    (*k->runs)++;
    if (has_own_formulas(&q))
        return;
    if (quantizer_is_learned(&q)) {
        expect_learned(k, &l, least, largest);
        return;
    }
    run(k, 1, &k->number, out, inputs);
    for (size_t i = 0; i < k->g->n_inputs; i++)
        if (strcmp(k->g->inputs[i]->name, "w") == 0)
            w = inputs[i];
    reduce(&l, w);
    expect_ranges(k, &l, w, out[0], least, largest);
    tensor_drop(&k->c->heap, out[0]);
}

/* Sources that look at a weight a hundred times. */
static bool looks_long(QuantValue source)
{
    return source == SOURCE_MSE || source == SOURCE_KL || source == SOURCE_HQO;
}

static bool has_weights(QuantValue source, const char *zero)
{
    const bool by_0 = source == SOURCE_LSQ || source == SOURCE_STATS || source == SOURCE_TQT || source == SOURCE_HQO ||
                      source == SOURCE_CONST;
    return source == SOURCE_MINMAX || source == SOURCE_DYNAMIC || source == SOURCE_MSE || source == SOURCE_KL ||
           source == SOURCE_SIGMA || (by_0 && strcmp(zero, "sym") == 0);
}

static Status weight_body(void *arg)
{
    Context *c = arg;
    int runs = 0, refused = 0;
    for (size_t p = 0; p < COUNT(products); p++)
        for (size_t g = 0; g < COUNT(grains); g++)
            for (size_t s = 0; s < COUNT(sources); s++)
                for (size_t f = 0; f < COUNT(formats) * COUNT(zeros) && sources[s].word; f++) {
                    const char *format = formats[f / COUNT(zeros)], *zero = zeros[f % COUNT(zeros)];
                    const bool integer = strncmp(format, "int", 3) == 0 || strncmp(format, "uint", 4) == 0;
                    if (looks_long(sources[s].value) && (f + g + p) % 16)
                        continue;
                    Case k = { .c = c, .p = &products[p], .grain = &grains[g], .runs = &runs, .refused = &refused };
                    k.spec = arena_printf(&c->arena, "w=%s:%s:%s:%s,a=off", format, grains[g].word,
                                          word_of(c, sources[s].word, sources[s].value), zero);
                    check_weight(&k, integer && strcmp(format, "int1") != 0 && grains[g].divides &&
                                         has_weights(sources[s].value, zero));
                }
    print_message("weights: %d run, %d refused\n", runs, refused);
    assert_true(runs > 3000 && refused > 3000);
    return OK;
}

static void weights_run_or_are_refused(void **state)
{
    (void)state;
    with_context(weight_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(weights_run_or_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
