/* Random draws of one call: every element's numbers by its logical index (base/philox.h), or NumPy's own sequence. */
#ifndef OPS_RANDOM_RANDOM_DRAWS_H
#define OPS_RANDOM_RANDOM_DRAWS_H

#include "base/mt19937.h"
#include "ops/card/cards.h"

/* random_normal, random_normal_like: first is the mean, second the scale; random_uniform..: low and high. */
typedef struct RandomAttr {
    Ints shape; /* of those without operand */
    int dtype;  /* DType + 1 */
    float first, second;
    float seed; /* NaN: not given */
    int64_t stream;
} RandomAttr;

/* A number of [0, 1) for each element of what has that type, by its place and the stream. */
Node *random_draws(Build *b, const Type *like, int64_t stream);

typedef struct BernoulliAttr {
    int dtype; /* DType + 1; 0: that of the operand */
    float seed;
    int64_t stream;
} BernoulliAttr;

typedef struct MultinomialAttr {
    int dtype; /* DType + 1 */
    int64_t sample_size;
    float seed;
    int64_t stream;
} MultinomialAttr;

typedef struct DropoutAttr {
    int64_t seed; /* NO_SEED: not given */
    int64_t stream;
} DropoutAttr;

#define NO_SEED (-1)

typedef struct Draws {
    uint64_t seed;
    uint32_t stream, step, iteration;
    bool numpy, has_spare;
    double spare;
    Mt19937 twister; /* of numpy */
} Draws;

/* The draws of a call; `own` is the node's seed as bits, used when `has_own`; numpy_seed is what NumPy gets then. */
void draws_open(Draws *d, const Eval *e, int64_t stream, bool has_own, uint32_t own, uint32_t numpy_seed);

/* The same with the seed attribute that ONNX gives as a float. */
void draws_open_float(Draws *d, const Eval *e, int64_t stream, float seed);

/* Numbers of [0, 1) for elements 0 .. n - 1: of 24 bits for f32, of 53 for f64 (NumPy's always have 53). */
void draw_uniform_f32(Draws *d, int64_t n, f32 *u);
void draw_uniform_f64(Draws *d, int64_t n, f64 *u);

/* Standard normal numbers. */
void draw_normal_f32(Draws *d, int64_t n, f32 *v);
void draw_normal_f64(Draws *d, int64_t n, f64 *v);

/* keep[i]: whether the number of [0, 1) of element i is not below p. */
void draw_not_below(Draws *d, int64_t n, double p, uint8_t *keep);

#endif
