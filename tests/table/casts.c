/* Which casts of casts may become one: pairs of conversions from every type, over all values of 8 and 16 bits and over
 * drawn and nearly tied ones of more, in both directions: what is folded has the same bits, and what is kept has a
 * value that folding would change, but for a list. */
#include <math.h>

#include "base/half.h"
#include "base/pack.h"
#include "ops/card/eval.h"
#include "passes/amp/cast_rules.h"
#include "support/language.h"
#include "support/seed.h"
#include "unit/check.h"

static const DType types[] = {
    BOOL, I8,  I32, F8E4M3, F8E5M2, F16,    BF16,   F32,        F64,
#ifdef SWEEP /* casts_sweep.c: more of everything */
    U8,   I16, U32, I64,    F4E2M1, F6E2M3, F6E3M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0,
#endif
};

#ifdef SWEEP
enum { BLOCKS = 64 };
#else
enum { BLOCKS = 2 };
#endif

enum { BLOCK = 1 << 16, SEARCHED = 64 };

/* ---- values ---- */

/* The float of a type next to `v`, away from zero by `ulps`. */
static double beside(double v, DType t, int ulps)
{
    if (t == F64) {
        const uint64_t bits = half_bits64(v) + (uint64_t)(int64_t)ulps;
        return half_f64(bits);
    }
    return (double)half_f32(half_bits32((float)v) + (uint32_t)ulps);
}

/* Halfway between two neighbours of a narrower type, or an ulp beside: where two roundings differ from one. */
static double nearly_tied(Rng *rng, DType of)
{
    static const int digits[] = { 1, 2, 3, 4, 8, 11, 24 };
    const int d = digits[rng_below(rng, (int64_t)COUNT(digits))];
    const double odd = (double)(((int64_t)1 << d) + rng_below(rng, (int64_t)1 << d)) + 0.5;
    const double v = ldexp(odd, (int)rng_range(rng, -30, 20) - d);
    return beside(rng_below(rng, 2) ? v : -v, of, (int)rng_range(rng, -1, 1));
}

static void draw_block(Tensor *t, Rng *rng, int block)
{
    const DType d = t->type->dtype;
    uint8_t *bytes = t->data;
    const int n = (int)tensor_elements(t);
    if (dtype_bits(d) <= 16) {
        for (int i = 0; i < n && dtype_bits(d) == 16; i++)
            ((uint16_t *)t->data)[i] = (uint16_t)i;
        for (int i = 0; i < n && dtype_bits(d) == 8; i++)
            bytes[i] = (uint8_t)(d == BOOL ? i & 1 : i);
        for (int i = 0; i < n && dtype_bits(d) < 8; i++)
            packed_put_bits(bytes, (size_t)i, (unsigned)dtype_bits(d), (uint8_t)i);
        return;
    }
    for (size_t i = 0; i < t->bytes / 8; i++)
        ((uint64_t *)t->data)[i] = rng_u64(rng);
    for (int i = 0; i < n; i++) {
        if (dtype_is_float(d) && (i + block) % 2)
            tensor_set_f64(t, i, nearly_tied(rng, d));
        else if (i % 4 == 1)
            tensor_set_f64(t, i, (double)rng_range(rng, -300, 300));
    }
}

/* ---- one chain ---- */

typedef struct Chain {
    DType a, b, d;
    Op inner, outer;
} Chain;

static Node *convert(Build *b, Op op, Node *x, DType to)
{
    const CastAttr attr = { .to = (int)to + 1, .saturate = true };
    Node *y = build_node(b, op, &attr, 1, &x);
    if (y && op == OP_amp_cast)
        y->flags |= NODE_OURS;
    return y;
}

static Graph *chain_graph(Language *l, const Chain *c, bool direct)
{
    Graph *g = graph_new(&l->ir, &l->arena, "f");
    Node *x = graph_input(g, "x", type_vector(&l->ir.types, c->a, dtype_bits(c->a) <= 8 ? 256 : BLOCK));
    Build b = build_at_end(g);
    Node *y = direct ? x : convert(&b, c->inner, x, c->b);
    y = convert(&b, direct ? OP_cast : c->outer, y, c->d);
    assert_int_equal(b.status, OK);
    graph_return(g, 1, &y, NULL);
    return g;
}

/* Whether two graphs give the same on a block. */
static bool agree(Language *l, Graph *f, Graph *g, const Tensor *x)
{
    Tensor *y = NULL, *z = NULL;
    Heap heap;
    heap_open(&heap, &l->memory);
    assert_int_equal(evaluate(f, NULL, &heap, &x, &y), OK);
    assert_int_equal(evaluate(g, NULL, &heap, &x, &z), OK);
    const bool same = tensor_same(y, z);
    heap_close(&heap);
    return same;
}

static const char *text_of(Language *l, const Chain *c)
{
    return arena_printf(&l->arena, "%s -%s-> %s -%s-> %s", dtype_name(c->a), c->inner == OP_cast ? "cast" : "ours",
                        dtype_name(c->b), c->outer == OP_cast ? "cast" : "ours", dtype_name(c->d));
}

/* What one conversion would do as well now and then, and is left alone all the same: integers only go where they are
 * contained, results of 8 bits forgive much, and no cast of ours takes the place of one to a type that is not ours. */
static bool may_be_kept(const Chain *c)
{
    return (c->outer == OP_amp_cast && !is_amp_width(c->a)) || dtype_bits(c->d) <= 8 || !dtype_is_float(c->a) ||
           !dtype_is_float(c->b) || !dtype_is_float(c->d);
}

static int blocks_of(const Chain *c, bool folded)
{
    return dtype_bits(c->a) <= 16 ? 1 : folded || may_be_kept(c) ? BLOCKS : SEARCHED;
}

static void check_chain(const Chain *c)
{
    Language l;
    language_open(&l);
    Graph *before = chain_graph(&l, c, false), *after = chain_graph(&l, c, false);
    const PassOptions options = { .exact_casts = true };
    assert_int_equal(pass_run(pass_find("fold-casts"), after, &(PassRun){ .options = &options, .allowed = -1 }), OK);
    const bool folded = graph_count(after) < graph_count(before);
    if (!folded)
        after = chain_graph(&l, c, true);
    bool same = true;
    Rng rng = { seed_of(text_of(&l, c), 0) };
    Tensor *x = tensor_new(&l.arena, before->inputs[0]->type);
    for (int k = 0; k < blocks_of(c, folded) && same; k++) {
        draw_block(x, &rng, k);
        same = agree(&l, before, after, x);
    }
    if (folded)
        check_that(same, "%s is folded, and changes values", text_of(&l, c));
    else
        check_that(!same || may_be_kept(c), "%s is kept for no reason", text_of(&l, c));
    language_close(&l);
}

static void casts_of_casts(void **state)
{
    (void)state;
    for (size_t a = 0; a < COUNT(types); a++)
        for (size_t b = 0; b < COUNT(types); b++)
            for (size_t d = 0; d < COUNT(types); d++)
                check_chain(&(Chain){ types[a], types[b], types[d], OP_cast, OP_cast });
}

/* Ours and the user's behind each other. */
static void casts_of_both_kinds(void **state)
{
    static const Op kinds[][2] = { { OP_cast, OP_amp_cast }, { OP_amp_cast, OP_cast }, { OP_amp_cast, OP_amp_cast } };
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t a = 0; a < COUNT(types); a++)
            for (size_t b = 0; b < COUNT(types); b++)
                for (size_t d = 0; d < COUNT(types); d++) {
                    const Chain c = { types[a], types[b], types[d], kinds[k][0], kinds[k][1] };
                    if (c.inner == OP_amp_cast && !(is_amp_width(c.a) && is_amp_width(c.b)))
                        continue;
                    if (c.outer == OP_amp_cast && !(is_amp_width(c.b) && is_amp_width(c.d)))
                        continue;
                    check_chain(&c);
                }
}

/* What --exact-casts keeps and the default leaves out: a rounding of ours, and only of ours. */
static void roundings_of_ours_may_go(void **state)
{
    static const struct {
        Op inner, outer;
        bool goes;
    } kinds[] = { { OP_amp_cast, OP_amp_cast, true },
                  { OP_cast, OP_amp_cast, false },
                  { OP_amp_cast, OP_cast, false } };
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int exact = 0; exact < 2; exact++) {
            Language l;
            language_open(&l);
            const Chain c = { F32, BF16, F32, kinds[k].inner, kinds[k].outer };
            Graph *g = chain_graph(&l, &c, false);
            PassRun run = { .options = &(PassOptions){ .exact_casts = exact }, .allowed = -1 };
            assert_int_equal(pass_run(pass_find("fold-casts"), g, &run), OK);
            check_that((run.changes > 0) == (kinds[k].goes && !exact), "%s", text_of(&l, &c));
            language_close(&l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_of_casts),
        cmocka_unit_test(casts_of_both_kinds),
        cmocka_unit_test(roundings_of_ours_may_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
