/* Casts that change places with what moves or orders values, and comparisons of widened ones: over all values of 16 bits,
 * and over drawn pairs; what no rule does has a value that shows why. */
#include <math.h>
#include <stdio.h>

#include "base/half.h"
#include "ops/card/eval.h"
#include "passes/amp/cast_rules.h"
#include "support/language.h"
#include "unit/check.h"

enum { ALL_16 = 1 << 16 };

static const DType narrow_types[] = { F16, BF16 };

static Tensor *all_values(Language *l, DType t)
{
    Tensor *x = tensor_new(&l->arena, type_vector(&l->ir.types, t, ALL_16));
    for (int i = 0; i < ALL_16; i++)
        ((uint16_t *)x->data)[i] = (uint16_t)i;
    return x;
}

/* f32 values: of any bits, and beside and between the values of a narrow type. */
static Tensor *drawn_values(Language *l, DType narrow, Rng *rng)
{
    Tensor *x = tensor_new(&l->arena, type_vector(&l->ir.types, F32, ALL_16));
    uint32_t *bits = x->data;
    for (int i = 0; i < ALL_16; i++) {
        const float near = narrow == F16 ? f16_to_f32((uint16_t)i) : bf16_to_f32((uint16_t)i);
        const uint32_t half = narrow == F16 ? 0x1000 : 0x8000;
        bits[i] = (uint32_t)rng_u64(rng);
        if (i % 8 == 4) /* too small for 16 bits, of both signs */
            bits[i] &= 0x80003fff;
        else if (i % 4)
            bits[i] = half_bits32(near) + half * (uint32_t)(i % 2) + (uint32_t)rng_range(rng, -1, 1);
    }
    return x;
}

static Tensor *shuffled(Language *l, const Tensor *x, Rng *rng)
{
    Tensor *y = tensor_new(&l->arena, x->type);
    const size_t size = x->bytes / ALL_16;
    for (int i = 0; i < ALL_16; i++)
        memcpy((char *)y->data + size * (size_t)i, (const char *)x->data + size * (size_t)rng_below(rng, ALL_16), size);
    return y;
}

/* ---- one question ---- */

typedef struct Question {
    const char *body; /* of `NARROW` and f32, on %x and %y; its last line gives %z */
    DType narrow;
    bool wide_inputs;
} Question;

static const char *with_type(Language *l, const Question *q)
{
    Text t;
    text_open(&t, &l->arena);
    const char *in = q->wide_inputs ? "f32" : dtype_name(q->narrow);
    text_printf(&t, "graph @f(%%x: %s[65536], %%y: %s[65536]) -> (%%z) {\n", in, in);
    for (const char *at = q->body; *at;) {
        const char *mark = strchr(at, '@');
        const size_t n = mark ? (size_t)(mark - at) : strlen(at);
        text_printf(&t, "%.*s%s", (int)n, at, mark ? dtype_name(q->narrow) : "");
        at += n + (mark != NULL);
    }
    text_printf(&t, "}\n");
    return text_get(&t);
}

typedef struct Answer {
    bool changed, same;
} Answer;

static Answer ask(const Question *q)
{
    Language l;
    Heap heap;
    Rng rng = { 11 };
    Tensor *before = NULL, *after = NULL;
    language_open(&l);
    heap_open(&heap, &l.memory);
    Module *m = language_parse(&l, with_type(&l, q), NULL);
    check_that(m != NULL, "%s", text_get(&l.messages));
    Graph *g = m->graphs[0], *was = graph_copy(g, &l.arena);
    const Tensor *x = q->wide_inputs ? drawn_values(&l, q->narrow, &rng) : all_values(&l, q->narrow);
    const Tensor *in[] = { x, shuffled(&l, x, &rng) };
    PassRun run = { .options = &(PassOptions){ .exact_casts = true }, .allowed = -1 };
    assert_int_equal(pass_run(pass_find("fold-casts"), g, &run), OK);
    assert_int_equal(evaluate(was, NULL, &heap, in, &before), OK);
    assert_int_equal(evaluate(g, NULL, &heap, in, &after), OK);
    const Answer answer = { run.changes != 0, tensor_same(before, after) };
    heap_close(&heap);
    language_close(&l);
    return answer;
}

static void check_moves(const char *body, bool wide_inputs, bool moves)
{
    for (size_t t = 0; t < COUNT(narrow_types); t++) {
        const Answer a = ask(&(Question){ body, narrow_types[t], wide_inputs });
        check_that(a.same, "in %s this changes values:\n%s", dtype_name(narrow_types[t]), body);
        check_that(a.changed == moves, "in %s this %s:\n%s", dtype_name(narrow_types[t]), moves ? "stays" : "moves",
                   body);
    }
}

/* ---- C-9, C-10 ---- */

#define UP_X   "%a: f32[65536] = amp_cast(%x, to=f32) ours\n"
#define UP_Y   "%b: f32[65536] = amp_cast(%y, to=f32) ours\n"
#define DOWN_Z "%z: @[65536] = amp_cast(%w, to=@) ours\n"

static const char *const passed_by_up[] = {
    UP_X "%z: f32[65536] = relu(%a)\n",
    UP_X "%z: f32[65536] = abs(%a)\n",
    UP_X "%z: f32[65536] = neg(%a)\n",
    UP_X UP_Y "%z: f32[65536] = max(%a, %b)\n",
    UP_X UP_Y "%z: f32[65536] = min(%a, %b)\n",
    UP_X "const %l: f32[] = -0.5\n const %h: f32[] = 6\n %z: f32[65536] = clip(%a, %l, %h)\n",
    UP_X "const %l: f32[] = -inf\n const %h: f32[] = -0\n %z: f32[65536] = clip(%a, %l, %h)\n",
    UP_X "const %s: i64[2] = [256, 256]\n const %i: i64[1] = [1]\n %c: f32[256,256] = reshape(%a, %s)\n"
         "%z: f32[256,1] = reduce_max(%c, %i)\n",
    UP_X "const %s: i64[2] = [256, 256]\n const %i: i64[1] = [0]\n %c: f32[256,256] = reshape(%a, %s)\n"
         "%z: f32[1,256] = reduce_min(%c, %i)\n",
    UP_X "const %s: i64[4] = [1, 1, 256, 256]\n %c: f32[1,1,256,256] = reshape(%a, %s)\n"
         "%z: f32[1,1,128,128] = max_pool(%c, kernel_shape=[2, 2], strides=[2, 2])\n",
    UP_X UP_Y "%z: f32[131072] = concat(%a, %b, axis=0)\n",
    UP_X UP_Y "%c: bool[65536] = less(%x, %y)\n %z: f32[65536] = where(%c, %a, %b)\n",
    UP_X "const %p: i64[2] = [1, -2]\n const %v: f32[] = -0.25\n %z: f32[65535] = pad(%a, %p, %v)\n",
};

static const char *const passed_by_down[] = {
    "%w: f32[65536] = abs(%x)\n" DOWN_Z,
    "%w: f32[65536] = neg(%x)\n" DOWN_Z,
    "%w: f32[131072] = concat(%x, %y, axis=0)\n %z: @[131072] = amp_cast(%w, to=@) ours\n",
    "const %s: i64[2] = [256, 256]\n %v: f32[256,256] = reshape(%x, %s)\n %w: f32[256,256] = transpose(%v)\n"
    "%z: @[256,256] = amp_cast(%w, to=@) ours\n",
    "const %p: i64[2] = [1, 2]\n const %v: f32[] = 0.1\n %w: f32[65539] = pad(%x, %p, %v)\n"
    "%z: @[65539] = amp_cast(%w, to=@) ours\n",
};

/* With a value that moving would change. */
static const struct {
    const char *as_is, *moved;
    bool wide_inputs;
} stays[] = {
    { "%w: f32[65536] = relu(%x)\n" DOWN_Z, "%w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = relu(%w)\n", true },
    { "const %l: f32[] = 0\n %w: f32[65536] = clip(%x, %l)\n" DOWN_Z,
      "const %l: @[] = 0\n %w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = clip(%w, %l)\n", true },
    { "%w: f32[65536] = add(%x, %y)\n" DOWN_Z,
      "%v: @[65536] = amp_cast(%x, to=@)\n %w: @[65536] = amp_cast(%y, to=@)\n %z: @[65536] = add(%v, %w)\n", true },
    { "%w: f32[65536] = floor(%x)\n" DOWN_Z, "%w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = floor(%w)\n", true },
    { "%w: f32[65536] = round(%x)\n" DOWN_Z, "%w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = round(%w)\n", true },
    { "%w: f32[65536] = sign(%x)\n" DOWN_Z, "%w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = sign(%w)\n", true },
    { "const %k: f32[] = 2\n %w: f32[65536] = mul(%x, %k)\n" DOWN_Z,
      "const %k: @[] = 2\n %w: @[65536] = amp_cast(%x, to=@)\n %z: @[65536] = mul(%w, %k)\n", true },
    { UP_X UP_Y "%z: f32[65536] = mul(%a, %b)\n",
      "%w: @[65536] = mul(%x, %y)\n %z: f32[65536] = amp_cast(%w, to=f32)\n", false },
    { UP_X "const %k: f32[] = 0.5\n %z: f32[65536] = mul(%a, %k)\n",
      "const %k: @[] = 0.5\n %w: @[65536] = mul(%x, %k)\n %z: f32[65536] = amp_cast(%w, to=f32)\n", false },
    { UP_X "const %l: f32[] = -0.1\n %z: f32[65536] = clip(%a, %l)\n",
      "const %l: @[] = -0.1\n %w: @[65536] = clip(%x, %l)\n %z: f32[65536] = amp_cast(%w, to=f32)\n", false },
    { "%w: bool[65536] = less(%x, %y)\n %z: bool[65536] = not(%w)\n",
      "%v: @[65536] = amp_cast(%x, to=@)\n %u: @[65536] = amp_cast(%y, to=@)\n %w: bool[65536] = less(%v, %u)\n"
      "%z: bool[65536] = not(%w)\n",
      true },
};

static bool differ(const char *as_is, const char *moved, DType narrow, bool wide_inputs)
{
    Language l;
    Heap heap;
    Rng rng = { 13 };
    Tensor *z[2] = { NULL, NULL };
    language_open(&l);
    heap_open(&heap, &l.memory);
    const Tensor *x = wide_inputs ? drawn_values(&l, narrow, &rng) : all_values(&l, narrow);
    const Tensor *in[] = { x, shuffled(&l, x, &rng) };
    for (int i = 0; i < 2; i++) {
        Module *m = language_parse(&l, with_type(&l, &(Question){ i ? moved : as_is, narrow, wide_inputs }), NULL);
        check_that(m != NULL, "%s", text_get(&l.messages));
        assert_int_equal(evaluate(m->graphs[0], NULL, &heap, in, &z[i]), OK);
    }
    const bool same = tensor_same(z[0], z[1]);
    heap_close(&heap);
    language_close(&l);
    return !same;
}

static void casts_move_where_nothing_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passed_by_up); i++)
        check_moves(passed_by_up[i], false, true);
    for (size_t i = 0; i < COUNT(passed_by_down); i++)
        check_moves(passed_by_down[i], true, true);
}

static void casts_stay_where_something_would(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(stays); i++) {
        bool differs = false;
        check_moves(stays[i].as_is, stays[i].wide_inputs, false);
        for (size_t t = 0; t < COUNT(narrow_types); t++)
            differs |= differ(stays[i].as_is, stays[i].moved, narrow_types[t], stays[i].wide_inputs);
        check_that(differs, "this stays for no reason:\n%s", stays[i].as_is);
    }
}

/* ---- C-14 ---- */

static const char *const questions[] = { "equal", "less", "less_or_equal", "greater", "greater_or_equal" };

/* Values of the type, ties and neighbours of them, beyond its ends, beneath its least, and what is no number. */
static const char *const constants[] = {
    "0",          "-0",         "1",          "-1",         "0.1",        "-0.1",       "0x3f801000",
    "0x3f800800", "0x3f808000", "0x3f808001", "0xbf807fff", "65504",      "65519",      "65520",
    "-65520",     "70000",      "-1e9",       "3.4e38",     "-3.4e38",    "inf",        "-inf",
    "nan",        "0x33000000", "0x33000001", "5e-8",       "-1e-12",     "1e-45",      "0x00008000",
    "0x00010000", "0x80018000", "6e-8",       "1e-40",      "0x7f7f8000", "0x477fe000",
};

static void comparisons_answer_alike(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(constants); k++)
        for (size_t i = 0; i < COUNT(questions); i++)
            for (int left = 0; left < 2; left++) {
                char body[400];
                snprintf(body, sizeof body, "%sconst %%k: f32[] = %s\n %%z: bool[65536] = %s(%s)\n", UP_X, constants[k],
                         questions[i], left ? "%k, %a" : "%a, %k");
                check_moves(body, false, true);
            }
    for (size_t i = 0; i < COUNT(questions); i++) {
        char body[400];
        snprintf(body, sizeof body, "%s%%z: bool[65536] = %s(%%a, %%b)\n", UP_X UP_Y, questions[i]);
        check_moves(body, false, true);
    }
}

static void neighbours_are_next(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(narrow_types); t++)
        for (uint32_t i = 0; i < 1u << 20; i++) {
            const DType d = narrow_types[t];
            const double v = (double)half_f32(i * 4093u), up = amp_at_least(v, d), down = amp_at_most(v, d);
            if (isnan(v))
                continue;
            check_that(up >= v && down <= v, "%a lies between %a and %a", v, down, up);
            check_that((up == v) == (down == v), "%a and %a beside %a", down, up, v);
            check_that(up == down || amp_at_least(nextafter(down, INFINITY), d) == up, "%a and %a are no neighbours",
                       down, up);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_move_where_nothing_changes),
        cmocka_unit_test(casts_stay_where_something_would),
        cmocka_unit_test(comparisons_answer_alike),
        cmocka_unit_test(neighbours_are_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
