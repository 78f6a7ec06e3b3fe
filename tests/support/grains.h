/* Quantizers of every grain, source and format in products of every kind, for tests that hold what they leave to plain loops. */
#ifndef TESTS_SUPPORT_GRAINS_H
#define TESTS_SUPPORT_GRAINS_H

#include <math.h>

#include "ir/role.h"
#include "ir/text/parse.h"
#include "passes/engine/pass.h"
#include "passes/learned/learned.h"
#include "passes/recipe/recipe.h"
#include "support/calls.h"
#include "support/few_floats.h"

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
static inline const char *word_of(Context *c, const char *word, QuantValue v)
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
static inline Status refused(Case *k)
{
    require(k->c->last && strstr(k->c->last, "\n  try: "), "%s: \"%s\" says nothing that could be written instead\n",
            k->spec, k->c->last ? k->c->last : "");
    (*k->refused)++;
    return INVALID;
}

static inline Node *number_of(Graph *g, const char *name)
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
static inline Status place(Case *k, const char *what)
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
static inline double value_at(const Node *input, int64_t i)
{
    if (is_state(input, STATE_counter))
        return 1000;
    if (input->name && strstr(input->name, "observed"))
        return 1;
    if (input->name && strstr(input->name, "step_size"))
        return -3 - 0.37 * (double)(i % 5);
    return sin(0.7 * (double)i + 0.3) * (1 + (double)(i % 7)) / 7;
}

static inline Tensor *value_for(Case *k, const Node *input)
{
    Tensor *t = tensor_new(&k->c->arena, input->type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, value_at(input, i));
    return t;
}

static inline void run(Case *k, int n, Node *const *results, Tensor **out, const Tensor **inputs)
{
    for (size_t i = 0; i < k->g->n_inputs; i++)
        inputs[i] = value_for(k, k->g->inputs[i]);
    graph_return(k->g, n, (Node **)(uintptr_t)results, NULL);
    assert_int_equal(evaluate(k->g, NULL, &k->c->heap, inputs, out), OK);
}

/* Where codes end: of floats at the largest numbers. */
static inline void ends_of(Quantizer q, double *least, double *largest)
{
    int64_t lo, hi;
    if (q.format == FORMAT_EITHER)
        q.format = FORMAT_INT;
    quantizer_codes(&q, &lo, &hi);
    *largest = quantizer_is_float(&q) ? few_floats(q.format).most : (double)hi;
    *least = quantizer_is_float(&q) ? -*largest : (double)lo;
}

/* ---- plain loops ---- */

typedef struct Loop {
    double lo[MOST], hi[MOST], sum[MOST], gradient[MOST], within[MOST];
    int count[MOST], key[MOST], n;
} Loop;

static inline void reduce(Loop *l, const Tensor *w)
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
static inline double quantized(const Quantizer *q, float x, float s, float z, double least, double largest)
{
    if (quantizer_is_float(q))
        return (double)((float)few_floats_nearest(q->format, (double)(x / s)) * s);
    const double code = fmin(fmax((double)(rintf(x / s) + z), least), largest);
    return (double)(((float)code - z) * s);
}

#endif
