/* Updates of what is kept in few bits: against formulas in f64, repeated many times, and by how chance falls. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/verify.h"
#include "ops/scalar.h"
#include "ops/update/blocks.h"
#include "support/language.h"
#include "unit/check.h"

enum { MOST_VALUES = 16 };

/* A graph over inputs, evaluated with what `in` holds; each `out` takes the place of the input that `next` names. */
typedef struct Run {
    Language l;
    Heap heap;
    Graph *graph;
    int n_in, n_out;
    Tensor *in[MOST_VALUES], *out[MOST_VALUES];
} Run;

static void run_open(Run *r, const char *text)
{
    language_open(&r->l);
    heap_open(&r->heap, &r->l.memory);
    Module *m = language_parse(&r->l, text, NULL);
    check_that(m, "%s", text_get(&r->l.messages));
    r->graph = m->graphs[0];
    r->n_in = (int)r->graph->n_inputs;
    r->n_out = graph_n_results(r->graph);
    for (int i = 0; i < r->n_in; i++) {
        r->in[i] = tensor_alloc(&r->heap, r->graph->inputs[i]->type);
        memset(r->in[i]->data, 0, r->in[i]->bytes);
    }
}

static void run_once(Run *r)
{
    check_that(evaluate(r->graph, NULL, &r->heap, (const Tensor *const *)r->in, r->out) == OK, "%s",
               text_get(&r->l.messages));
}

static void run_take(Run *r, int out, int in)
{
    tensor_drop(&r->heap, r->in[in]);
    r->in[in] = r->out[out];
    r->out[out] = NULL;
}

static void run_drop(Run *r)
{
    for (int i = 0; i < r->n_out; i++)
        if (r->out[i])
            tensor_drop(&r->heap, r->out[i]);
    memset(r->out, 0, sizeof r->out);
}

static void run_close(Run *r)
{
    for (int i = 0; i < r->n_in; i++)
        tensor_drop(&r->heap, r->in[i]);
    heap_close(&r->heap);
    language_close(&r->l);
}

static void fill_draws(Tensor *t, uint32_t step)
{
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const Philox4 group = philox_group(7, 11, (uint64_t)i, step, 0, PHILOX_VALUE);
        ((float *)t->data)[i] = (float)(group.v[i % 4] >> 8) * 0x1p-24f;
    }
}

/* ---- codes ---- */

enum { ROWS = 4, COLUMNS = 64, REPEATS = 200 };

static const char sgd_text[] =
    "graph @f(%x: i8[4,64], %g: f32[4,64], %lr: f32[], %t: i64[], %s: f32[4,1], %r: f32[4,64]) -> (%y, %z) {\n"
    "%u: (i8[4,64], f32[4,1]) = update_sgd(%x, %g, %lr, %t, _, _, _, _, %s, _, %r, least=-127, largest=127,"
    " rounding=sr)\n"
    "%y: i8[4,64] = part(%u, index=0)\n%z: f32[4,1] = part(%u, index=1)\n}\n";

/* Codes of numbers whose largest is 1, each row its own. */
static void begin_codes(Run *r, double largest)
{
    for (int i = 0; i < ROWS; i++) {
        ((float *)r->in[4]->data)[i] = (float)(1 / largest);
        for (int k = 0; k < COLUMNS; k++)
            tensor_set_i64(r->in[0], i * COLUMNS + k, k == i ? 127 : (int64_t)lrint(100 * cos(1.7 * (k + 3 * i))));
    }
}

/* The step adds nothing but moves every number a hair, so that each is rounded by chance again. */
static void nothing_shrinks_over_many_roundings(void **state)
{
    Run r;
    (void)state;
    run_open(&r, sgd_text);
    begin_codes(&r, 127);
    for (uint32_t step = 1; step <= REPEATS; step++) {
        fill_draws(r.in[5], step);
        run_once(&r);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            check_that(tensor_get_i64(r.out[0], i) >= -127, "a code is %d", (int)tensor_get_i64(r.out[0], i));
        run_take(&r, 0, 0);
        run_take(&r, 1, 4);
    }
    for (int i = 0; i < ROWS; i++) {
        const double largest = 127 * tensor_get_f64(r.in[4], i);
        check_that(fabs(largest - 1) <= 1e-4, "the largest of row %d is %g after %d roundings", i, largest, REPEATS);
    }
    run_close(&r);
}

/* What others do: the largest number has no code, and half of the time the one below. */
static void with_half_a_code_more_numbers_shrink(void **state)
{
    double largest = 1;
    (void)state;
    for (uint32_t step = 1; step <= REPEATS; step++) {
        const Philox4 group = philox_group(7, 11, 0, step, 0, PHILOX_VALUE);
        const float scale = (float)(largest / 127.5), v = (float)(largest / scale),
                    q = clamp_f32(stochastic_f32(v, (float)(group.v[0] >> 8) * 0x1p-24f), -128, 127);
        largest = q * scale;
    }
    check_that(largest <= 0.95, "the largest number is still %g", largest);
}

/* Codes after one step of SGD, by the formula in f64: within the step of a code, and on average the number itself. */
static void chance_falls_as_it_should(void **state)
{
    enum { TRIES = 4000, WATCHED = 8 };
    int up[WATCHED] = { 0 };
    double part[WATCHED], chi = 0;
    Run r;
    (void)state;
    run_open(&r, sgd_text);
    begin_codes(&r, 127);
    tensor_set_f64(r.in[2], 0, 0.01);
    for (int k = 0; k < WATCHED; k++)
        ((float *)r.in[1]->data)[k + ROWS] = (float)(0.13 + 0.05 * k);
    for (int k = 0; k < WATCHED; k++) {
        const int at = k + ROWS; /* row 0, whose largest stays */
        const double x = (double)tensor_get_i64(r.in[0], at) / 127 - 0.01 * (double)((float *)r.in[1]->data)[at];
        part[k] = 127 * x - floor(127 * x);
    }
    for (uint32_t step = 1; step <= TRIES; step++) {
        fill_draws(r.in[5], step);
        run_once(&r);
        for (int k = 0; k < WATCHED; k++) {
            const int at = k + ROWS;
            const double x = (double)tensor_get_i64(r.in[0], at) / 127 - 0.01 * (double)((float *)r.in[1]->data)[at];
            const int64_t above = tensor_get_i64(r.out[0], at) - (int64_t)floor(127 * x);
            check_that(above == 0 || above == 1, "code %d is %d from below", at, (int)above);
            up[k] += (int)above;
        }
        run_drop(&r);
    }
    for (int k = 0; k < WATCHED; k++) {
        const double want = TRIES * part[k];
        chi += (up[k] - want) * (up[k] - want) / (want * (1 - part[k]));
    }
    check_that(chi < 26.1, "chi-square of %d is %g", WATCHED, chi); /* 1 of 1000 */
    run_close(&r);
}

/* ---- scales ---- */

static const char adam_text[] =
    "graph @f(%x: i8[1,4], %g: f32[1,4], %lr: f32[], %t: i64[], %m: f32[1,4], %v: f32[1,4], %s: f32[1,1]) -> (%y, %z)"
    " {\n"
    "%u: (i8[1,4], f32[1,4], f32[1,4], f32[1,1]) = update_adam(%x, %g, %lr, %t, _, %m, %v, _, %s, least=-127,"
    " largest=127, sticky=true, scale_decay=true, weight_decay=0.1, decoupled=true)\n"
    "%y: i8[1,4] = part(%u, index=0)\n%z: f32[1,1] = part(%u, index=3)\n}\n";

/* Without gradients weights decay, and not a code changes: the scale does, by a product each step. */
static void decay_is_the_scales(void **state)
{
    static const int codes[] = { 127, -60, 1, 0 };
    float scale = 0.01f;
    Run r;
    (void)state;
    run_open(&r, adam_text);
    tensor_set_f64(r.in[2], 0, 0.5);
    tensor_set_f64(r.in[6], 0, scale);
    for (int k = 0; k < 4; k++)
        tensor_set_i64(r.in[0], k, codes[k]);
    for (int step = 1; step <= 50; step++) {
        tensor_set_i64(r.in[3], 0, step);
        run_once(&r);
        scale *= 1 - 0.5f * 0.1f;
        for (int k = 0; k < 4; k++)
            check_that(tensor_get_i64(r.out[0], k) == codes[k], "code %d of step %d is another one", k, step);
        check_that((float)tensor_get_f64(r.out[1], 0) == scale, "the scale of step %d is %g, not %g", step,
                   tensor_get_f64(r.out[1], 0), (double)scale);
        run_take(&r, 0, 0);
        run_take(&r, 1, 6);
        run_drop(&r);
    }
    run_close(&r);
}

/* ---- counts ---- */

/* One step of SGD at a rate of 1, and what it counts: numbers that are to change, those by less than half a step, codes. */
static const struct {
    const char *type, *scaled, *attributes;
    double x[4], scale, zero, g[4];
    int64_t updates, below, changed;
} counted[] = {
    { "i8[1,4]", "%s", "least=-127, largest=127", { 127, 10, -20, 0 }, 0.01, 0, { 0, 0.004, 0.02, 0 }, 2, 1, 1 },
    { "i8[1,4]", "%s", "least=-127, largest=127", { 127, 10, -20, 0 }, 0.01, 0, { 0, 0, 0, 0 }, 0, 0, 0 },
    { "i8[1,4]", "%s", "least=-127, largest=127", { 127, 10, -20, 0 }, 0.01, 0, { 0, -0.004, 0.004, 0.004 }, 3, 3, 0 },
    { "u4[1,4]", "%s, %z", "largest=15", { 0, 15, 5, 8 }, 0.1, 5, { 0, 0, 0.04, -0.06 }, 2, 1, 1 },
    { "bf16[1,4]", NULL, NULL, { 1, 2, 0.5, 0 }, 0, 0, { 0.001, 0.5, 0, 1e-30 }, 3, 1, 2 },
};

static void what_becomes_of_updates_is_counted(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT(counted); c++) {
        Run r;
        char text[1000];
        const char *type = counted[c].type, *scaled = counted[c].scaled, *attributes = counted[c].attributes;
        const bool zero = scaled && strstr(scaled, "%z");
        snprintf(text, sizeof text,
                 "graph @f(%%x: %s, %%g: f32[1,4], %%lr: f32[], %%t: i64[], %%s: f32[1,1], %%z: u4[1,1]) -> (%%n) {\n"
                 "%%u: (%s%s%s, i64[3]) = update_sgd(%%x, %%g, %%lr, %%t%s%s, %s%scounts=true)\n"
                 "%%n: i64[3] = part(%%u, index=%d)\n}\n",
                 type, type, scaled ? ", f32[1,1]" : "", zero ? ", u4[1,1]" : "", scaled ? ", _, _, _, _, " : "",
                 scaled ? scaled : "", attributes ? attributes : "", attributes ? ", " : "", 1 + !!scaled + zero);
        run_open(&r, text);
        tensor_set_f64(r.in[2], 0, 1);
        tensor_set_f64(r.in[4], 0, counted[c].scale);
        tensor_set_i64(r.in[5], 0, (int64_t)counted[c].zero);
        for (int k = 0; k < 4; k++) {
            if (dtype_is_float(r.in[0]->type->dtype))
                tensor_set_f64(r.in[0], k, counted[c].x[k]);
            else
                tensor_set_i64(r.in[0], k, (int64_t)counted[c].x[k]);
            ((float *)r.in[1]->data)[k] = (float)counted[c].g[k];
        }
        run_once(&r);
        check_that(tensor_get_i64(r.out[0], COUNT_UPDATES) == counted[c].updates &&
                       tensor_get_i64(r.out[0], COUNT_BELOW) == counted[c].below &&
                       tensor_get_i64(r.out[0], COUNT_CHANGED) == counted[c].changed,
                   "case %zu: %d, %d and %d are counted", c, (int)tensor_get_i64(r.out[0], COUNT_UPDATES),
                   (int)tensor_get_i64(r.out[0], COUNT_BELOW), (int)tensor_get_i64(r.out[0], COUNT_CHANGED));
        run_drop(&r);
        run_close(&r);
    }
}

/* ---- states ---- */

/* How a state lies and which elements share a scale: `n` of them, each `after` from the next, in blocks of `block`. */
typedef struct Laid {
    const char *dims, *scales;
    int elements, n, after, block;
} Laid;

static const Laid laid[] = {
    { "2,256", "2,1", 512, 256, 1, 256 },     /* rows */
    { "40,12", "3,12", 480, 40, 12, 16 },     /* down the columns, the last block is half of one */
    { "3,5,4,2", "3,3,1,1", 120, 40, 1, 16 }, /* filters */
    { "7,9,5", "20,1,1", 315, 315, 1, 16 },   /* consecutive */
    { "2,20,6", "2,1,6", 240, 20, 6, 32 },    /* stacks, whose columns are shorter than a block */
};

enum { MOST_ELEMENTS = 512, MOST_SCALES = 64, STEPS = 20 };

static void momentum_text(char *text, size_t size, const Laid *k)
{
    const char *x = k->dims, *s = k->scales;
    snprintf(
        text, size,
        "graph @f(%%x: f32[%s], %%g: f32[%s], %%lr: f32[], %%t: i64[], %%m: u8[%s], %%s: f32[%s]) -> (%%y, %%n, %%z)"
        " {\n%%u: (f32[%s], u8[%s], f32[%s]) = update_sgd(%%x, %%g, %%lr, %%t, _, %%m, _, _, _, _, _, %%s, block=%d,"
        " momentum=0.9)\n%%y: f32[%s] = part(%%u, index=0)\n%%n: u8[%s] = part(%%u, index=1)\n"
        "%%z: f32[%s] = part(%%u, index=2)\n}\n",
        x, x, x, s, x, x, s, k->block, x, x, s);
}

static int scale_of(const Laid *k, int i)
{
    const int along = i / k->after % k->n, before = i / k->after / k->n, blocks = (k->n + k->block - 1) / k->block;
    return (before * blocks + along / k->block) * k->after + i % k->after;
}

static void check_momentum(const Run *r, const Laid *k, const double *m, const double *most)
{
    float numbers[MOST_ELEMENTS];
    state_numbers("m", k->block, r->out[1], r->out[2], numbers);
    for (int i = 0; i < k->elements; i++) {
        const double x = tensor_get_f64(r->in[0], i) - 0.1 * m[i], v = m[i] / most[scale_of(k, i)];
        const int64_t code = tensor_get_i64(r->out[1], i);
        const double miss = fabs(v - levels_f32[code]), below = code > 0 ? fabs(v - levels_f32[code - 1]) : 9,
                     above = code < 255 ? fabs(v - levels_f32[code + 1]) : 9;
        check_that(fabs(tensor_get_f64(r->out[0], i) - x) <= 1e-6, "%s, %d: %g, not %g", k->dims, i,
                   tensor_get_f64(r->out[0], i), x);
        check_that(miss <= fmin(below, above) + 1e-6, "%s, %d: %g is not nearest to level %d", k->dims, i, v,
                   (int)code);
        check_that(numbers[i] == levels_f32[code] * (float)tensor_get_f64(r->out[2], scale_of(k, i)),
                   "%s, %d: seen as %g", k->dims, i, (double)numbers[i]);
    }
}

/* Momentum in 8 bits: the parameter follows the momentum before it is rounded, which the formula does in f64 from what is
 * stored; the code is of a level that no other is nearer to.  What shares a scale is of a size, and its neighbours not. */
static void the_parameter_follows_what_was_not_rounded(void **state)
{
    (void)state;
    for (size_t which = 0; which < COUNT(laid); which++) {
        const Laid *k = &laid[which];
        char text[1024];
        Run r;
        momentum_text(text, sizeof text, k);
        run_open(&r, text);
        tensor_set_f64(r.in[2], 0, 0.1);
        for (int step = 1; step <= STEPS; step++) {
            double m[MOST_ELEMENTS], most[MOST_SCALES] = { 0 };
            for (int i = 0; i < k->elements; i++) {
                const int at = scale_of(k, i);
                const double old = levels_f32[tensor_get_i64(r.in[4], i)] * tensor_get_f64(r.in[5], at);
                ((float *)r.in[1]->data)[i] = (float)sin(0.37 * i + step) * (at % 2 ? 1e-4f : 1);
                m[i] = 0.9 * old + (double)((float *)r.in[1]->data)[i];
                most[at] = fmax(most[at], fabs(m[i]));
            }
            run_once(&r);
            check_momentum(&r, k, m, most);
            run_take(&r, 0, 0);
            run_take(&r, 1, 4);
            run_take(&r, 2, 5);
        }
        run_close(&r);
    }
}

/* ---- what is wrong ---- */

static const struct {
    const char *operands, *result, *attributes, *wants;
} mistakes[] = {
    { "%x, %g, %lr, %t", "i8[2,4]", "", "trains floats, and codes that have a scale, not i8" },
    { "%x, %g, %lr, %t, _, _, _, _, %s", "(i8[2,4], f32[2,1])", "", "codes from 0 to 0 have no scale" },
    { "%x, %g, %lr, %t, _, _, _, _, %s", "(i8[2,4], f32[2,1])", "least=-128, largest=127",
      "codes from -128 to 127 have no scale without a zero point" },
    { "%x, %g, %lr, %t, _, _, _, _, %lr", "(i8[2,4], f32[])", "least=-127, largest=127",
      "f32[] are no scales of i8[2,4]" },
    { "%x, %g, %lr, %t, _, _, _, _, %s", "(i8[2,4], f32[2,1])", "least=-127, largest=127, rounding=sr",
      "rounding=sr wants a draw for each element" },
    { "%x, %g, %lr, %t, _, _, _, _, %s, _, %g", "(i8[2,4], f32[2,1])", "least=-127, largest=127",
      "draws for rounding=sr of codes and of bf16 alone" },
    { "%x, %g, %lr, %t, _, _, _, _, %s", "(i8[2,4], f32[2,1])", "least=-127, largest=127, scale_decay=true",
      "has no weight decay apart from the gradient that a scale could take" },
    { "%g, %g, %lr, %t", "f32[2,4]", "sticky=true", "says of codes what a parameter of f32 does not have" },
    { "%g, %g, %lr, %t", "(f32[2,4], i64[3])", "counts=true", "counts codes, and bf16, not f32" },
    { "%g, %g, %lr, %t, _, %g, _, _, _, _, _, %q", "(f32[2,4], f32[2,4], f32[3])", "momentum=0.9",
      "keeps no state of f32 with a scale" },
    { "%g, %g, %lr, %t, _, %c, _, _, _, _, _, %q", "(f32[2,4], u8[2,4], f32[3])", "block=4, momentum=0.9",
      "f32[3] are no scales of u8[2,4] in blocks of 4" },
    { "%g, %g, %lr, %t, _, %c, _, _, _, _, _, %s", "(f32[2,4], u8[2,4], f32[2,1])", "momentum=0.9",
      "f32[2,1] are no scales of u8[2,4] in blocks of 0" },
    { "%g, %g, %lr, %t, _, %c, _, _, _, _, _, %s", "(f32[2,4], u8[2,4], f32[2,1])", "block=3, momentum=0.9",
      "f32[2,1] are no scales of u8[2,4] in blocks of 3" },
};

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        Language l;
        Text t;
        language_open(&l);
        text_open(&t, &l.arena);
        text_printf(&t,
                    "graph @f(%%x: i8[2,4], %%g: f32[2,4], %%lr: f32[], %%t: i64[], %%s: f32[2,1], %%c: u8[2,4],"
                    " %%q: f32[3]) -> (%%u) {\n%%u: %s = update_sgd(%s%s%s)\n}\n",
                    mistakes[i].result, mistakes[i].operands, *mistakes[i].attributes ? ", " : "",
                    mistakes[i].attributes);
        Module *m = language_parse(&l, text_get(&t), NULL);
        check_that(!m || verify(m->graphs[0], NULL) != OK, "%s is accepted", text_get(&t));
        const char *said = text_get(&l.messages);
        check_that(strstr(said, mistakes[i].wants), "%s, not %s", said, mistakes[i].wants);
        language_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_shrinks_over_many_roundings),
        cmocka_unit_test(with_half_a_code_more_numbers_shrink),
        cmocka_unit_test(chance_falls_as_it_should),
        cmocka_unit_test(decay_is_the_scales),
        cmocka_unit_test(what_becomes_of_updates_is_counted),
        cmocka_unit_test(the_parameter_follows_what_was_not_rounded),
        cmocka_unit_test(what_does_not_fit_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
