/* label: slow */
/* Every grain, source of the scale and format of weights and of data, in products of every kind: it runs, and each
 * element has the number that a plain loop over those who share its scale gives it, or it is refused with a reason
 * and with what to write instead.  Learned scales have the gradient of LSQ's formula in f64. */
#include <math.h>

#include "ir/role.h"
#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "passes/learned/learned.h"
#include "passes/quant/placement.h"
#include "support/few_floats.h"
#include "support/calls.h"

enum { SUM = 20, CHANNELS = 6, MOST = SUM * CHANNELS * 9 };

/* A product, and where the weight has its channels and what it adds up. */
typedef struct Product {
    const char *text;
    int channel, sum;
    bool rows;  /* its data have rows */
    bool alone; /* its weights alone are quantized */
} Product;

static const Product products[] = {
    { "graph @f(%x: f32[3,20], state %w: f32[20,6] trained) -> (%y) {\n"
      "    %y: f32[3,6] = matmul(%x, %w)\n}\n",
      1, 0, true },
    { "graph @f(%x: f32[2,3,20], state %w: f32[20,6] trained) -> (%y) {\n"
      "    %y: f32[2,3,6] = matmul(%x, %w)\n}\n",
      1, 0, true },
    { "graph @f(%x: f32[3,20], state %w: f32[6,20] trained) -> (%y) {\n"
      "    %y: f32[3,6] = gemm(%x, %w, transB=true)\n}\n",
      0, 1, true },
    { "graph @f(%x: f32[1,20,3,3], state %w: f32[6,20,3,3] trained) -> (%y) {\n"
      "    %y: f32[1,6,1,1] = conv(%x, %w)\n}\n",
      0, 1, false },
    { "graph @f(%x: f32[1,20,2,2], state %w: f32[20,6,2,2] trained) -> (%y) {\n"
      "    %y: f32[1,6,3,3] = conv_transpose(%x, %w)\n}\n",
      1, 0, false },
    { "graph @f(%x: f32[2,3,20], state %w: f32[1,6,20] trained, %r: f32[1,6,6]) -> (%y) {\n"
      "    %y: f32[2,1,3,6] = rnn(%x, %w, %r)\n}\n",
      1, 2, false, true },
    { "graph @f(%x: i64[3], state %w: f32[6,20] trained) -> (%y) {\n"
      "    %y: f32[3,20] = gather(%w, %x)\n}\n",
      0, 1, false, true },
};

/* So many channels, and so many along the sum, share a scale; 0: all. */
typedef struct Grain {
    const char *word;
    int channels, sums;
    bool divides;
} Grain;

static const Grain grains[] = {
    { "tensor", 0, 0, true },     { "channel", 1, 0, true },      { "row", 1, 0, true },
    { "group=4", 1, 4, true },    { "group=20", 1, 20, true },    { "group=8", 1, 8, false },
    { "group=32", 1, 32, false }, { "block=4", 1, 4, true },      { "block=8", 1, 8, true },
    { "block=32", 1, 32, true },  { "tile=2x4", 2, 4, true },     { "tile=4x8", 4, 8, true },
    { "tile=1x5", 1, 5, true },   { "tile=32x32", 32, 32, true },
};

typedef struct Source {
    const char *word;
    QuantValue value;
} Source;

/* Words with an argument that each takes. */
static const char *word_of(Context *c, const char *word, QuantValue v)
{
    const char *argument = v == SOURCE_CONST   ? "=0.0625"
                           : v == SOURCE_PCT   ? "=99.9"
                           : v == SOURCE_SIGMA ? "=3"
                           : v == SOURCE_STATS ? "=100"
                                               : "";
    return arena_printf(&c->arena, "%s%s", word, argument);
}

static const Source sources[] = {
#define WORD(field, word, value, ...) { QUANT_##field == QUANT_SOURCE ? word : NULL, value },
    QUANT_WORDS(WORD)
#undef WORD
};

static const char *const formats[] = { "int1",  "int2",  "int3",  "int4",  "int5",  "int8",    "int9",
                                       "int16", "uint1", "uint2", "uint4", "uint8", "uint16",  "int4|uint4",
                                       "e4m3",  "e5m2",  "e2m3",  "e3m2",  "e2m1",  "ternary", "binary" };
static const char *const zeros[] = { "sym", "asym" };

typedef struct Case {
    Context *c;
    const Product *p;
    const Grain *grain;
    const char *spec;
    QuantSpec read;
    Graph *g;
    Node *number; /* of what is quantized */
    int *runs, *refused;
} Case;

/* A refusal says what to write instead. */
static Status refused(Case *k)
{
    require(k->c->last && strstr(k->c->last, "\n  try: "), "%s: \"%s\" says nothing that could be written instead\n",
            k->spec, k->c->last ? k->c->last : "");
    (*k->refused)++;
    return INVALID;
}

static Node *number_of(Graph *g, const char *name)
{
    for (Node *n = g->first; n; n = n->next) {
        const Node *codes = op_of(n)->quant.dequantizes ? in(n, 0) : NULL;
        const Node *of = codes && op_of(codes)->quant.quantizes ? learned_from(in(codes, 0)) : NULL;
        if (of && of->name && strcmp(of->name, name) == 0)
            return n;
    }
    return NULL;
}

/* Reads the spec and places it. */
static Status place(Case *k, const char *what)
{
    SourceMap source;
    Module *m;
    k->c->last = NULL;
    if (quantizer_read(&k->read, "--quant", k->spec, "ort", &k->c->arena, &k->c->diag) != OK)
        return refused(k);
    assert_int_equal(parse_module(&k->c->ir, &k->c->arena, str(k->p->text), "f.qir", NULL, &source, &m), OK);
    const QuantOverride named = { "op:Gather", &k->read, "--quant-op" };
    Recipe recipe = { .quantization = { .spec = &k->read, .target = "generic", .overrides = &named } };
    recipe.quantization.n_overrides = strstr(k->p->text, "gather(") != NULL; /* tables want to be named */
    const PassOptions options = { .recipe = &recipe };
    k->g = m->graphs[0];
    if (pass_run(pass_find("place-quant"), k->g, &(PassRun){ .options = &options, .allowed = -1 }) != OK)
        return refused(k);
    k->number = number_of(k->g, what);
    require(k->number != NULL, "%s: %s stays as it is\n%s", k->spec, what, k->p->text);
    return OK;
}

/* Numbers in [-1, 1] that are no ties, and logarithms of scales, over a scale of 1 where it was seen; steps behind which
 * scales are learned. */
static double value_at(const Node *input, int64_t i)
{
    if (is_state(input, STATE_counter))
        return 1000;
    if (input->name && strstr(input->name, "observed"))
        return 1;
    if (input->name && strstr(input->name, "step_size"))
        return -3 - 0.37 * (double)(i % 5);
    return sin(0.7 * (double)i + 0.3) * (1 + (double)(i % 7)) / 7;
}

static Tensor *value_for(Case *k, const Node *input)
{
    Tensor *t = tensor_new(&k->c->arena, input->type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, value_at(input, i));
    return t;
}

static void run(Case *k, int n, Node *const *results, Tensor **out, const Tensor **inputs)
{
    for (size_t i = 0; i < k->g->n_inputs; i++)
        inputs[i] = value_for(k, k->g->inputs[i]);
    graph_return(k->g, n, (Node **)(uintptr_t)results, NULL);
    assert_int_equal(evaluate(k->g, NULL, &k->c->heap, inputs, out), OK);
}

/* Where codes end: of floats at the largest numbers. */
static void ends_of(Quantizer q, double *least, double *largest)
{
    int64_t lo, hi;
    if (q.format == FORMAT_EITHER)
        q.format = FORMAT_INT;
    quantizer_codes(&q, &lo, &hi);
    *largest = quantizer_is_float(&q) ? few_floats(q.format).most : (double)hi;
    *least = quantizer_is_float(&q) ? -*largest : (double)lo;
}

/* ---- plain loops ---- */

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

typedef struct Loop {
    double lo[MOST], hi[MOST], sum[MOST], gradient[MOST], within[MOST];
    int count[MOST], key[MOST], n;
} Loop;

static void reduce(Loop *l, const Tensor *w)
{
    memset(l->lo, 0, sizeof l->lo);
    memset(l->hi, 0, sizeof l->hi);
    memset(l->sum, 0, sizeof l->sum);
    memset(l->count, 0, sizeof l->count);
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const int k = l->key[i];
        l->lo[k] = fmin(l->lo[k], at(w, i));
        l->hi[k] = fmax(l->hi[k], at(w, i));
        l->sum[k] += fabs(at(w, i));
        l->count[k]++;
    }
}

/* The number that a quantizer leaves, in its own arithmetic. */
static double quantized(const Quantizer *q, float x, float s, float z, double least, double largest)
{
    if (quantizer_is_float(q))
        return (double)((float)few_floats_nearest(q->format, (double)(x / s)) * s);
    const double code = fmin(fmax((double)(rintf(x / s) + z), least), largest);
    return (double)(((float)code - z) * s);
}

/* ---- weights ---- */

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

/* Gradients of the logarithms of scales: what reaches element i of the weight is 1 + i / 64. */
static void learn(Loop *l, const Tensor *w, const Tensor *logs, const int *of_state, double least, double largest)
{
    int most = 0;
    memset(l->gradient, 0, sizeof l->gradient);
    memset(l->within, 0, sizeof l->within);
    for (int i = 0; i < l->n; i++)
        most = l->count[i] > most ? l->count[i] : most;
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        const int key = l->key[i];
        const double s = exp2(at(logs, of_state[key])), v = at(w, i) / s, dy = 1 + (double)i / 64;
        const bool below = v<least, above = v> largest; /* mask=v */
        const double slope = below ? least : above ? largest : rint(v) - v;
        const double factor = dy * s * log(2) / sqrt((double)most * largest);
        const bool ties = fabs(v - floor(v) - 0.5) < 1e-6 * (1 + fabs(v));
        l->gradient[key] += factor * slope;
        l->within[key] += factor * (2e-5 * fabs(slope) + 1e-6 * fabs(v) + ties);
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
    const bool seen = k->read.of[OPERAND_W].part[QUANT_SOURCE].value == SOURCE_STATS; /* and stays */
    for (int i = 0; i < l->n; i++) {
        const double want = seen ? 1 : log2(2 * l->sum[i] / l->count[i] / sqrt(largest)), got = at(out[1], of_state[i]);
        require(fabs(got - want) < 1e-5, "%s: scale %d begins at %g, not %g\n%s", k->spec, i, got, want, k->p->text);
        const double comes = at(out[2], of_state[i]);
        require(fabs(comes - l->gradient[i]) <= l->within[i], "%s: %g comes to scale %d, not %g\n%s", k->spec, comes, i,
                l->gradient[i], k->p->text);
    }
}

static void expect_learned(Case *k, Loop *l, double least, double largest)
{
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
    learn(l, values, logs, of_state, least, largest);
    expect_states(k, l, of_state, out, largest);
    for (int64_t i = 0; i < tensor_elements(values); i++) {
        const double s = exp2(at(logs, of_state[l->key[i]])), v = at(values, i) / s;
        const double want = fmin(fmax(rint(v), least), largest) * s;
        if (fabs(fabs(v - floor(v)) - 0.5) > 1e-4)
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
    const Case *all = arg;
    int runs = 0, refused = 0;
    for (size_t p = 0; p < COUNT(products); p++)
        for (size_t g = 0; g < COUNT(grains); g++)
            for (size_t s = 0; s < COUNT(sources); s++)
                for (size_t f = 0; f < COUNT(formats) * COUNT(zeros) && sources[s].word; f++) {
                    const char *format = formats[f / COUNT(zeros)], *zero = zeros[f % COUNT(zeros)];
                    const bool integer = strncmp(format, "int", 3) == 0 || strncmp(format, "uint", 4) == 0;
                    if (looks_long(sources[s].value) && (f + g + p) % 16)
                        continue;
                    Case k = {
                        .c = all->c, .p = &products[p], .grain = &grains[g], .runs = &runs, .refused = &refused
                    };
                    k.spec = arena_printf(&all->c->arena, "w=%s:%s:%s:%s,a=off", format, grains[g].word,
                                          word_of(all->c, sources[s].word, sources[s].value), zero);
                    check_weight(&k, integer && strcmp(format, "int1") != 0 && grains[g].divides &&
                                         has_weights(sources[s].value, zero));
                }
    print_message("weights: %d run, %d refused\n", runs, refused);
    assert_true(runs > 3000 && refused > 3000);
    return OK;
}

/* ---- data ---- */

/* Along which dimension data have rows: the last, or the channels of what filters read. */
static int axis_of_data(const Product *p, const Type *t)
{
    return p->rows ? t->rank - 1 : 1;
}

/* Who shares a scale of rows of data, or of parts of them that are so long. */
static void keys_of_rows(Loop *l, const Type *t, int axis, int64_t size)
{
    int64_t inner = 1;
    for (int d = axis + 1; d < t->rank; d++)
        inner *= t->dims[d];
    const int64_t parts = (t->dims[axis] + size - 1) / size;
    for (int64_t i = 0; i < type_elements(t); i++)
        l->key[i] = (int)((i / inner / t->dims[axis] * parts + i / inner % t->dims[axis] / size) * inner + i % inner);
    l->n = (int)(type_elements(t) / t->dims[axis] * parts);
}

/* Rows of data, and blocks of them, have scales of their own, whatever the weight has. */
static void check_rows(Case *k, int64_t size, double least, double largest)
{
    static Loop l;
    const Tensor *inputs[8], *x = NULL;
    Tensor *out[1];
    run(k, 1, &k->number, out, inputs);
    for (size_t i = 0; i < k->g->n_inputs; i++)
        if (strcmp(k->g->inputs[i]->name, "x") == 0)
            x = inputs[i];
    const Quantizer *q = &k->read.of[OPERAND_A];
    const bool sym = q->part[QUANT_ZERO].value == ZERO_SYM;
    const int axis = axis_of_data(k->p, x->type);
    keys_of_rows(&l, x->type, axis, size ? size : x->type->dims[axis]);
    reduce(&l, x);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        const float lo = (float)l.lo[l.key[i]], hi = (float)l.hi[l.key[i]];
        const float s = sym ? fmaxf(-lo, hi) / (float)largest : (hi - lo) / (float)(largest - least);
        const float z = sym ? 0 : (float)fmin(fmax((double)rintf((float)least - lo / s), least), largest);
        require(at(out[0], i) == quantized(q, (float)at(x, i), s, z, least, largest), "%s: element %d is %g\n", k->spec,
                (int)i, at(out[0], i));
    }
    tensor_drop(&k->c->heap, out[0]);
}

/* Whether a grain is one of data of a product: one scale, one a row, or blocks within rows. */
static bool is_of_data(const Product *p, const Grain *g)
{
    if (strcmp(g->word, "row") == 0)
        return p->rows;
    return strcmp(g->word, "tensor") == 0 || (g->sums && g->channels == 1 && g->divides);
}

static Status data_body(void *arg)
{
    const Case *all = arg;
    int runs = 0, refused = 0, rows = 0;
    for (size_t p = 0; p < COUNT(products); p++)
        for (size_t g = 0; g < COUNT(grains); g++)
            for (size_t s = 0; s < COUNT(sources); s++)
                for (size_t f = 0; f < COUNT(formats) * COUNT(zeros) && sources[s].word; f++) {
                    double least, largest;
                    const char *format = formats[f / COUNT(zeros)];
                    if (products[p].alone)
                        continue;
                    Case k = {
                        .c = all->c, .p = &products[p], .grain = &grains[g], .runs = &runs, .refused = &refused
                    };
                    k.spec = arena_printf(&all->c->arena, "a=%s:%s:%s:%s,w=int4:block=8", format, grains[g].word,
                                          word_of(all->c, sources[s].word, sources[s].value), zeros[f % COUNT(zeros)]);
                    const bool integer = strncmp(format, "int", 3) == 0 || strncmp(format, "uint", 4) == 0;
                    const bool part = strcmp(grains[g].word, "tensor") != 0;
                    if (place(&k, "x") != OK) {
                        require(!(integer && strcmp(format, "int1") != 0 && part && is_of_data(k.p, k.grain) &&
                                  sources[s].value == SOURCE_DYNAMIC),
                                "%s is refused: %s\n", k.spec, k.c->last);
                        continue;
                    }
                    runs++;
                    require(is_of_data(k.p, k.grain), "%s runs\n%s", k.spec, k.p->text);
                    ends_of(k.read.of[OPERAND_A], &least, &largest);
                    if (part && ++rows)
                        check_rows(&k, k.grain->sums, least, largest);
                }
    print_message("data: %d run, %d of them by rows and blocks, %d refused\n", runs, rows, refused);
    assert_true(runs > 800 && rows > 400 && refused > 3000);
    return OK;
}

static Status with_case(void *context, Status (*body)(void *arg))
{
    Case all = { .c = context };
    return body(&all);
}

static Status weights_in_context(void *context)
{
    return with_case(context, weight_body);
}

static Status data_in_context(void *context)
{
    return with_case(context, data_body);
}

static void weights_run_or_are_refused(void **state)
{
    (void)state;
    with_context(weights_in_context);
}

static void data_run_or_are_refused(void **state)
{
    (void)state;
    with_context(data_in_context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_run_or_are_refused),
        cmocka_unit_test(data_run_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
