/* Fused graphs: random ones have the values of what they were made from, and every tape the bits of the evaluator, at each
 * level and with any number of threads. */
#include "ops/card/reduction.h"
#include "ops/card/row.h"
#include "passes/engine/trial.h"
#include "support/random_graph.h"
#include "support/samples.h"
#include "runtime/cpu/tape_chains.h"
#include "support/tape_check.h"
#include "testing.h"

enum { GRAPHS = 400 };

/* ---- their tapes ---- */

static Status check_random(void *context)
{
    TapeCheck w = { .c = context };
    const Pass *fuse = pass_find("grow-fusion"), *dead = pass_find("drop-dead");
    int64_t graphs = 0, alone = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = seed_of("tapes", k);
        Graph *g = random_graph(w.c, seed, false);
        if (!g)
            continue;
        Graph *before = graph_copy(g, &w.c->arena);
        TRY(pass_run(fuse, g, NULL));
        TRY(pass_run(dead, g, NULL));
        bool ran;
        Arena scratch;
        arena_open(&scratch, &w.c->memory);
        const char *difference = trial_compare(before, g, EXACT, seed, &scratch, &ran);
        if (difference)
            print_error("graph %d: %s\n", (int)k, difference);
        assert_null(difference);
        arena_close(&scratch);
        if (!ran)
            continue; /* a graph that the evaluator refuses */
        assert_true(tape_check(&w, g, seed));
        graphs++;
        for (const Node *n = g->first; n; n = n->next)
            alone += n->op != OP_fused && n->op != OP_part && n->op != OP_const;
    }
    printf("%d graphs, %d tapes with %d folds over blocks, %d of channels, %d in pieces, %d calls alone\n", (int)graphs,
           (int)w.tapes, (int)w.folded, (int)w.channels, (int)w.pieces, (int)alone);
    assert_false(w.wrong);
    assert_true(graphs > GRAPHS / 2 && w.tapes > graphs && w.folded > 50 && alone < graphs);
    assert_true(w.channels > 20 && w.pieces > 5);
    return OK;
}

/* ---- channels ---- */

/* Statistics of channels, which other sums need first, and elements; what leaves is read again in later walks. */
static Graph *channel_graph(Context *c, const int64_t *dims, DType d)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t of_channel[] = { 1, dims[1], 1 }, around[] = { dims[0], 1, dims[2] }, axes[] = { 0, 2 };
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, d, 3, dims));
    Node *m = graph_input(g, "m", type_tensor(&c->ir.types, F32, 3, of_channel));
    Node *w = graph_input(g, "w", type_tensor(&c->ir.types, d, 3, around));
    Node *v = graph_input(g, "v", type_tensor(&c->ir.types, F32, 1, dims + 2));
    Node *e = build_node(&b, OP_sub, NULL, 2, (Node *[]){ d == F32 ? x : build_cast(&b, x, F32), m });
    Node *sum = build_reduce(&b, OP_reduce_sum, e, 2, axes);
    Node *f = build_node(&b, OP_mul, NULL, 2, (Node *[]){ build_node(&b, OP_add, NULL, 2, (Node *[]){ e, v }), sum });
    Node *squares = build_reduce(&b, OP_reduce_sum_square, f, 2, axes);
    Node *narrow = d == F32 ? f : build_cast(&b, f, d);
    Node *h = build_node(&b, OP_add, NULL, 2, (Node *[]){ narrow, w });
    Node *wide = d == F32 ? h : build_cast(&b, h, F32);
    Node *y = build_node(&b, OP_div, NULL, 2, (Node *[]){ wide, squares });
    Node *most = build_reduce(&b, OP_reduce_max, build_cast(&b, y, F64), 2, axes);
    graph_return(g, 5, (Node *[]){ e, y, h, sum, most }, NULL);
    return g;
}

static Status check_channels(void *context)
{
    /* whole rows; runs that end with pieces, that are longer than one, and such that pieces run over */
    static const int64_t cases[][3] = {
        { 2, 3, 5 },    { 40, 9, 3 },  { 3, 100, 16 },  { 2, 70, 1024 }, { 3, 8, 747 },
        { 2, 5, 2048 }, { 5, 8, 832 }, { 2, 64, 3136 }, { 300, 8, 49 },  { 1030, 9, 2 },
        { 7, 9, 300 },  { 33, 2, 65 }, { 2, 8, 40000 }, { 64, 70, 33 },  { 3, 11, 1025 }
    };
    TapeCheck w = { .c = context };
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        Graph *g = channel_graph(w.c, cases[i / 2], i % 2 ? BF16 : F32);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("channels", i)));
        assert_int_equal(w.tapes, i + 1);
    }
    printf("%d tapes of channels, %d in pieces, %d runs over arguments\n", (int)w.channels, (int)w.pieces, (int)w.over);
    assert_false(w.wrong);
    assert_true(w.channels == w.tapes && w.pieces > 12 && w.pieces < w.channels && w.over > w.tapes);
    return OK;
}

/* ---- rows with a loop of their own ---- */

static Node *binary(Build *b, Op op, Node *x, Node *y)
{
    return build_node(b, op, NULL, 2, (Node *[]){ x, y });
}

/* Numbers of rows, given and reduced, and one row for all, in every operand of rows of two and three; constants beside them. */
static Graph *row_graph(Context *c, int64_t rows, int64_t length, DType d)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t dims[] = { rows, length }, by_row[] = { rows, 1 }, along = 1, down = 0;
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, d, 2, dims));
    Node *m = graph_input(g, "m", type_tensor(&c->ir.types, d, 2, by_row));
    Node *r = graph_input(g, "r", type_tensor(&c->ir.types, d, 2, by_row));
    Node *v = graph_input(g, "v", type_tensor(&c->ir.types, d, 1, &length));
    Node *k = build_scalar(&b, d, 0.75), *zero = build_scalar(&b, d, 0), *own = build_scalar(&b, d, 0.25);
    Node *e = binary(&b, OP_mul, r, binary(&b, OP_sub, x, m));
    Node *w = binary(&b, OP_sub, v, binary(&b, OP_mul, e, v));
    Node *sum = build_reduce(&b, OP_reduce_sum, binary(&b, OP_mul, e, w), 1, &along);
    Node *f = binary(&b, OP_sub, binary(&b, OP_div, sum, w), binary(&b, OP_mul, e, sum));
    Node *above = binary(&b, OP_greater, f, zero);
    Node *p = build_node(&b, OP_where, NULL, 3, (Node *[]){ above, v, own });
    Node *q = build_node(&b, OP_where, NULL, 3, (Node *[]){ above, k, m });
    Node *t = build_node(&b, OP_where, NULL, 3, (Node *[]){ above, sum, v });
    Node *u = build_node(&b, OP_where, NULL, 3, (Node *[]){ above, m, r });
    Node *all = binary(&b, OP_add, binary(&b, OP_add, p, q), binary(&b, OP_mul, t, u));
    Node *cols = build_reduce(&b, OP_reduce_sum, all, 1, &down);
    Node *most = build_reduce(&b, OP_reduce_max, binary(&b, OP_mul, p, k), 1, &along);
    graph_return(g, 6, (Node *[]){ f, p, q, all, cols, most }, NULL);
    return g;
}

/* One row a block, several, and rows that are too short for a loop of their own. */
static Status check_rows(void *context)
{
    static const int64_t cases[][2] = { { 1, 64 },  { 2, 64 },   { 70, 64 }, { 7, 65 },   { 130, 100 }, { 3, 300 },
                                        { 9, 512 }, { 66, 513 }, { 5, 768 }, { 3, 1500 }, { 40, 63 },   { 33, 8 } };
    static const DType types[] = { F32, F64, BF16 };
    TapeCheck w = { .c = context };
    for (size_t i = 0; i < COUNT(types) * COUNT(cases); i++) {
        Graph *g = row_graph(w.c, cases[i / COUNT(types)][0], cases[i / COUNT(types)][1], types[i % COUNT(types)]);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("rows", i)));
        assert_int_equal(w.tapes, i + 1);
        assert_false(w.wrong);
    }
    return OK;
}

/* ---- tables ---- */

enum { CODES = 1 << 16 };

/* Every bf16 four times, what costly rows make of it, in f32 and rounded, beside what is made of something else too. */
static Graph *table_graph(Context *c, bool cut)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t dims[] = { 512, 4 * CODES / 512 }, along = 1;
    Tensor *all = tensor_new(&c->arena, type_tensor(&c->ir.types, BF16, 2, dims));
    for (int i = 0; i < 4 * CODES; i++)
        ((uint16_t *)all->data)[i] = (uint16_t)((unsigned)i * 40503);
    Node *x = build_const(&b, all), *dy = graph_input(g, "dy", type_tensor(&c->ir.types, F32, 2, dims));
    Node *wide = build_cast(&b, x, F32), *half = build_scalar(&b, F32, 0.5);
    Node *e = build_node(&b, OP_exp, NULL, 1, (Node *[]){ binary(&b, OP_mul, wide, half) });
    Node *s = binary(&b, OP_add, build_node(&b, OP_erf, NULL, 1, &wide), half);
    Node *slope = binary(&b, OP_add, s, binary(&b, OP_mul, wide, e));
    Node *change = cut ? binary(&b, OP_sub, dy, build_reduce(&b, OP_reduce_max, dy, 1, &along)) : dy;
    Node *z = binary(&b, OP_mul, change, slope), *narrow = build_cast(&b, binary(&b, OP_mul, dy, half), BF16);
    Node *t = build_node(&b, OP_tanh, NULL, 1, &narrow), *u = binary(&b, OP_mul, build_cast(&b, narrow, F32), s);
    graph_return(g, 5, (Node *[]){ z, e, t, u, build_cast(&b, slope, BF16) }, NULL);
    return g;
}

static Status check_tables(void *context)
{
    TapeCheck w = { .c = context };
    for (int cut = 0; cut < 2; cut++) {
        Graph *g = table_graph(w.c, cut);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("tables", (uint64_t)cut)));
        assert_int_equal(w.tapes, cut + 1);
        assert_false(w.wrong);
    }
    return OK;
}

/* ---- codes ---- */

/* Codes with a zero point and without one, made of what nobody else reads, or with somebody who does; numbers among them are none. */
static Graph *code_graph(Context *c, const int64_t *dims, bool cut, bool shared)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t along = 1;
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, F32, 2, dims));
    Node *z = graph_input(g, "z", type_tensor(&c->ir.types, F32, 0, NULL));
    Node *zero = build_scalar(&b, F32, 0), *hundred = build_scalar(&b, F32, 100), *most = build_scalar(&b, F32, 127);
    Node *from = cut ? binary(&b, OP_sub, x, build_reduce(&b, OP_reduce_max, x, 1, &along)) : x;
    Node *v = binary(&b, OP_div, binary(&b, OP_mul, from, hundred), binary(&b, OP_mul, from, from));
    Node *r = build_node(&b, OP_round, NULL, 1, &v), *none = build_node(&b, OP_is_nan, NULL, 1, &r);
    Node *with = build_node(&b, OP_where, NULL, 3, (Node *[]){ none, z, binary(&b, OP_add, r, z) });
    Node *a = build_node(&b, OP_clip, NULL, 3, (Node *[]){ with, zero, most });
    Node *s = binary(&b, OP_mul, from, hundred), *q = build_node(&b, OP_round, NULL, 1, &s);
    Node *known = build_node(&b, OP_where, NULL, 3, (Node *[]){ build_node(&b, OP_is_nan, NULL, 1, &q), zero, q });
    Node *d = build_node(&b, OP_clip, NULL, 3, (Node *[]){ known, build_scalar(&b, F32, -127), most });
    Node *back = binary(&b, OP_mul, binary(&b, OP_sub, d, shared ? q : z), hundred);
    graph_return(g, 4, (Node *[]){ build_cast(&b, a, U8), a, build_cast(&b, d, I8), back }, NULL);
    return g;
}

static Status check_codes(void *context)
{
    static const int64_t cases[][2] = { { 1, 64 }, { 70, 65 }, { 3, 1500 }, { 40, 7 } };
    TapeCheck w = { .c = context };
    for (size_t i = 0; i < 4 * COUNT(cases); i++) {
        Graph *g = code_graph(w.c, cases[i / 4], i % 2, i / 2 % 2);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("codes", i)));
        assert_int_equal(w.tapes, i + 1);
        assert_false(w.wrong);
    }
    return OK;
}

/* ---- sums of codes ---- */

/* Numbers of all sizes that a type has. */
static Node *whole_numbers(Context *c, Build *b, DType d, const int64_t *dims)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, d, 2, dims));
    for (size_t i = 0; i < t->bytes; i++)
        ((u8 *)t->data)[i] = (u8)((i + 1) * 2654435761u >> 13) & (d == BOOL ? 1 : 0xff);
    return build_const(b, t);
}

/* Whole numbers that become floats: some are nothing else, one leaves as it is, one is read as what it was, too. */
static Graph *sum_graph(Context *c, const int64_t *dims, bool cut)
{
    static const DType types[] = { I32, I8, U8, I16, BOOL, I64 };
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t along = 1, by_row[] = { dims[0], 1 };
    Node *y = graph_input(g, "s", type_tensor(&c->ir.types, F32, 2, by_row));
    for (size_t i = 0; i < COUNT(types); i++) {
        Node *x = whole_numbers(c, &b, types[i], dims);
        y = binary(&b, OP_add, binary(&b, OP_mul, build_cast(&b, x, F32), build_scalar(&b, F32, 0.25)), y);
    }
    Node *u = whole_numbers(c, &b, U32, dims), *left = whole_numbers(c, &b, I32, dims);
    Node *twice = binary(&b, OP_mul, build_cast(&b, u, F32), build_cast(&b, binary(&b, OP_add, u, u), F32));
    Node *z = cut ? binary(&b, OP_sub, y, build_reduce(&b, OP_reduce_max, y, 1, &along)) : y;
    graph_return(g, 3, (Node *[]){ z, twice, build_cast(&b, left, F32) }, NULL);
    return g;
}

static Status check_sums(void *context)
{
    static const int64_t cases[][2] = { { 1, 64 }, { 70, 65 }, { 3, 1500 }, { 40, 7 } };
    TapeCheck w = { .c = context };
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        const int64_t before = w.casts;
        Graph *g = sum_graph(w.c, cases[i / 2], i % 2);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("sums", i)));
        assert_true(w.casts > before);
        assert_false(w.wrong);
    }
    return OK;
}

static void sums(void **state)
{
    (void)state;
    with_context(check_sums);
}

/* ---- bits ---- */

enum { ALL_FREE = -1, ROWS, CHANNELS };

/* Conditions that leave as bits, and some that come in as such, beside a reduction that cuts the space in a way. */
static Graph *bit_graph(Context *c, const int64_t *dims, int cut)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const int64_t axes[] = { 2, 0 };
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, F32, 3, dims));
    Node *m = graph_input(g, "m", type_tensor(&c->ir.types, BIT, 3, dims));
    Node *passes = build_cast(&b, m, BOOL), *zero = build_scalar(&b, F32, 0);
    Node *y = build_node(&b, OP_where, NULL, 3, (Node *[]){ passes, x, zero });
    Node *z =
        cut == ALL_FREE ? y : binary(&b, OP_sub, y, build_reduce(&b, OP_reduce_sum, y, cut == ROWS ? 1 : 2, axes));
    Node *bits = build_cast(&b, binary(&b, OP_less, zero, z), BIT);
    graph_return(g, 2, (Node *[]){ z, bits }, NULL);
    return g;
}

/* Where elements of rows fill no bytes, the bits are packed apart. */
static Status check_bits(void *context)
{
    static const int64_t cases[][3] = { { 3, 5, 7 },    { 40, 3, 8 },  { 9, 100, 24 }, { 2, 70, 1024 },
                                        { 3, 8, 744 },  { 6, 9, 12 },  { 2, 5, 2048 }, { 300, 8, 56 },
                                        { 1, 1, 4097 }, { 64, 7, 33 }, { 5, 8, 832 },  { 2, 8, 40000 } };
    TapeCheck w = { .c = context };
    int apart = 0;
    for (int i = 0; i < 3 * (int)COUNT(cases); i++) {
        const int64_t *dims = cases[i / 3];
        const int cut = i % 3 - 1;
        Graph *g = bit_graph(w.c, dims, cut);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_check(&w, g, seed_of("bits", (uint64_t)i)));
        assert_false(w.wrong);
        int alone = 0;
        for (const Node *n = g->first; n; n = n->next)
            alone += n->op == OP_fused && n->type->kind == TYPE_TENSOR && n->type->dtype == BIT;
        assert_true(!alone || (cut != ALL_FREE && dims[2] % 8));
        apart += alone;
    }
    printf("%d tapes with bits, %d times packed apart\n", (int)w.tapes, apart);
    assert_true(apart > 4 && w.channels > 8);
    return OK;
}

/* ---- composites, opened and put together anew ---- */

typedef struct Opened {
    CardTour tour;
    int64_t graphs, tapes;
} Opened;

static Status open_composites(void *thing)
{
    static const char *const passes[] = { "expand", "merge-equals", "grow-fusion", "drop-dead" };
    Opened *o = thing;
    Context *c = o->tour.c;
    const bool opens = o->tour.def->expand || o->tour.def->open;
    for (int v = 0; v < o->tour.def->n_variants && opens; v++) {
        Graph *g = sample_graph(c, o->tour.def, v);
        if (!g)
            continue;
        bool ran;
        Graph *before = graph_copy(g, &c->arena);
        for (size_t i = 0; i < COUNT(passes); i++)
            if (pass_run(pass_find(passes[i]), g, NULL) != OK) {
                print_error("%s, variant %d: %s: %s\n", o->tour.def->name, v, passes[i], c->last);
                return INVALID;
            }
        const char *difference = trial_compare(before, g, EXACT, (uint64_t)v, &c->arena, &ran);
        if (difference)
            print_error("%s, variant %d: %s\n", o->tour.def->name, v, difference);
        if (difference)
            return MISMATCH;
        TapeCheck w = { .c = c };
        if (ran)
            assert_true(tape_check(&w, g, (uint64_t)v));
        if (w.wrong)
            print_error("%s, variant %d\n", o->tour.def->name, v);
        o->graphs += ran;
        o->tapes += w.tapes;
        if (w.wrong)
            return MISMATCH;
    }
    return OK;
}

/* ---- chains ---- */

/* What a chain reads: numbers that are constants, given, of rows, or of channels; elements of their own, or of one row for all. */
typedef enum ChainCase { OF_CONSTANTS, OF_SCALARS, OF_ROWS, OF_CHANNELS, OF_LONG_CHANNELS, CHAIN_CASES } ChainCase;

typedef struct ChainGraph {
    Context *c;
    Build b;
    ChainCase how;
    const Type *space;
    const int *word;
    bool clips; /* its numbers are bounds, of which no loop reads two by rows */
    Node *leaf[CHAIN_LEAVES];
} ChainGraph;

static const Type *number_type(const ChainGraph *g)
{
    int64_t dims[3];
    for (int i = 0; i < g->space->rank; i++)
        dims[i] = i == (g->how == OF_ROWS ? 0 : 1) ? g->space->dims[i] : 1;
    return type_tensor(&g->c->ir.types, F32, g->how == OF_SCALARS || g->clips ? 0 : g->space->rank, dims);
}

static Node *chain_leaf(ChainGraph *g, int leaf)
{
    Node **n = &g->leaf[-leaf];
    const bool along =
        g->how == OF_ROWS && leaf == LEAF_Z && g->word[-2] != OP_sqrt; /* a root of one row is made apart */
    if (*n)
        return *n;
    if (leaf > LEAF_A)
        *n = graph_input(g->b.graph, NULL,
                         along ? type_tensor(&g->c->ir.types, F32, 1, g->space->dims + g->space->rank - 1) : g->space);
    else if (g->how == OF_CONSTANTS)
        *n = build_scalar(&g->b, F32, 0.125 * -leaf);
    else
        *n = graph_input(g->b.graph, NULL, number_type(g));
    return *n;
}

static Node *chain_node(ChainGraph *g)
{
    const int word = *g->word++;
    Node *in[TAPE_OPERANDS];
    if (word < 0)
        return chain_leaf(g, word);
    const int n = g->c->ir.ops->defs[word]->row->n;
    for (int i = 0; i < n; i++)
        in[i] = chain_node(g);
    return build_node(&g->b, (Op)word, NULL, n, in);
}

/* The chain alone; by rows and channels its result is summed, too, which makes them so. */
static Graph *chain_graph(Context *c, int chain, ChainCase how)
{
    static const int64_t dims[CHAIN_CASES][3] = { { 3, 700 }, { 5, 411 }, { 9, 130 }, { 4, 9, 40 }, { 2, 8, 3136 } };
    const int rank = how < OF_CHANNELS ? 2 : 3;
    Graph *f = graph_new(&c->ir, &c->arena, "f");
    ChainGraph g = { .c = c,
                     .b = build_at_end(f),
                     .how = how,
                     .space = type_tensor(&c->ir.types, F32, rank, dims[how]),
                     .word = tape_chain_words[chain] };
    for (int i = 0; i < CHAIN_WORDS; i++)
        g.clips = g.clips || g.word[i] == OP_clip;
    Node *y = chain_node(&g);
    const int64_t row[] = { 1 }, channel[] = { 0, 2 };
    Node *sum = how < OF_ROWS
                    ? y
                    : build_reduce(&g.b, OP_reduce_sum, y, how == OF_ROWS ? 1 : 2, how == OF_ROWS ? row : channel);
    graph_return(f, 2, (Node *[]){ y, sum }, NULL);
    return f;
}

static Status check_chains(void *context)
{
    TapeCheck w = { .c = context };
    for (int chain = 0; chain < CHAIN_COUNT; chain++)
        for (ChainCase how = 0; how < CHAIN_CASES; how++) {
            Graph *g = chain_graph(w.c, chain, how);
            const int64_t before = w.chains;
            TRY(pass_run(pass_find("grow-fusion"), g, NULL));
            TRY(pass_run(pass_find("drop-dead"), g, NULL));
            assert_true(tape_check(&w, g, seed_of("chains", (uint64_t)(chain * CHAIN_CASES + how))));
            if (w.chains == before)
                print_error("chain %d is not found, case %d\n", chain, (int)how);
            assert_true(w.chains > before);
        }
    printf("%d tapes, %d in pieces, %d chains\n", (int)w.tapes, (int)w.pieces, (int)w.chains);
    assert_false(w.wrong);
    return OK;
}

static void chains(void **state)
{
    (void)state;
    with_context(check_chains);
}

static void composites(void **state)
{
    Opened o = { .graphs = 0 };
    (void)state;
    assert_int_equal(each_card(&o.tour, open_composites), 0);
    printf("%d composites, %d tapes\n", (int)o.graphs, (int)o.tapes);
    assert_true(o.graphs > 300 && o.tapes > o.graphs);
}

static void random_graphs(void **state)
{
    (void)state;
    with_context(check_random);
}

static void channels(void **state)
{
    (void)state;
    with_context(check_channels);
}

static void rows_by_themselves(void **state)
{
    (void)state;
    with_context(check_rows);
}

static void tables(void **state)
{
    (void)state;
    with_context(check_tables);
}

static void codes(void **state)
{
    (void)state;
    with_context(check_codes);
}

static void bits(void **state)
{
    (void)state;
    with_context(check_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs), cmocka_unit_test(channels), cmocka_unit_test(rows_by_themselves),
        cmocka_unit_test(tables),        cmocka_unit_test(codes),    cmocka_unit_test(sums),
        cmocka_unit_test(bits),          cmocka_unit_test(chains),   cmocka_unit_test(composites)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
