/* What calls make of constants and keep from run to run: made once, by a call that ended well, and of constants alone. */
#include "ops/contract/contract.h"
#include "ops/machine/caller.h"
#include "ops/quant/words.h"
#include "support/calls.h"

typedef struct Case {
    const char *name;
    Node *(*build)(Build *b, Rng *rng);
    int weights; /* the operand of which something is kept */
} Case;

/* Of values from `seed` on for the data: weights are the same in all graphs. */
static Node *product(Build *b, Rng *rng, DType dtype, bool turned)
{
    Node *x = DRAW(b, rng, dtype, 9, 70);
    Rng same = { 5 };
    Node *w = turned ? DRAW(b, &same, dtype, 40, 70) : DRAW(b, &same, dtype, 70, 40);
    return CALL_ATTR(b, matmul, ((MatmulAttr){ .tb = turned }), x, w);
}

static Node *product_f32(Build *b, Rng *rng)
{
    return product(b, rng, F32, false);
}

static Node *turned_f32(Build *b, Rng *rng)
{
    return product(b, rng, F32, true);
}

static Node *product_f64(Build *b, Rng *rng)
{
    return product(b, rng, F64, false);
}

static Node *product_of_codes(Build *b, Rng *rng)
{
    Node *x = sample_tensor(b, rng, U8, 2, (int64_t[]){ 9, 70 }, 0, 255);
    Rng same = { 5 };
    return CALL(b, matmul_integer, x, sample_tensor(b, &same, I8, 2, (int64_t[]){ 70, 40 }, -127, 127));
}

static Node *convolution(Build *b, Rng *rng)
{
    Node *x = DRAW(b, rng, F32, 2, 6, 7, 7);
    Rng same = { 5 };
    Node *w = DRAW(b, &same, F32, 10, 6, 3, 3);
    return CALL(b, conv, x, w);
}

static Node *convolution_of_codes(Build *b, Rng *rng)
{
    Node *x = sample_tensor(b, rng, U8, 4, (int64_t[]){ 2, 6, 20, 20 }, 0, 255);
    Rng same = { 5 };
    return CALL(b, conv_integer, x, sample_tensor(b, &same, I8, 4, (int64_t[]){ 10, 6, 3, 3 }, -127, 127));
}

/* Whose sums become codes as they are made. */
static Node *convolution_to_codes(Build *b, Rng *rng)
{
    enum { ROWS = 10 };
    static const int64_t rows = ROWS;
    Rng same = { 5 };
    const QconvAttr at = { .conv.group = 1, .codes.gain = 1 };
    Node *ins[] = { [QCONV_X] = sample_tensor(b, rng, U8, 4, (int64_t[]){ 2, 6, 20, 20 }, 0, 255),
                    [QCONV_X_SCALE] = build_scalar(b, F32, 0.01),
                    [QCONV_X_ZERO] = build_scalar(b, U8, 7),
                    [QCONV_W] = sample_tensor(b, &same, I8, 4, (int64_t[]){ ROWS, 6, 3, 3 }, -127, 127),
                    [QCONV_W_SCALE] = sample_tensor(b, &same, F32, 1, &rows, 0.01, 0.02),
                    [QCONV_W_ZERO] = build_scalar(b, I8, 0),
                    [QCONV_Y_SCALE] = build_scalar(b, F32, 0.1),
                    [QCONV_Y_ZERO] = build_scalar(b, I8, -5) };
    return build_node(b, OP_qconv, &at, COUNT(ins), ins);
}

static const Case cases[] = {
    { "product of f32", product_f32, 1 },
    { "turned product of f32", turned_f32, 1 },
    { "product of f64", product_f64, 1 },
    { "product of codes", product_of_codes, 1 },
    { "convolution of f32", convolution, 1 },
    { "convolution of codes", convolution_of_codes, 1 },
    { "convolution to codes", convolution_to_codes, QCONV_W },
};

typedef struct Trial {
    Context *c;
    const Case *k;
    Caller *caller;
    EvalKept kept;
    Node *node; /* whose operands are those of the call */
    const Tensor *in[QCONV_BIAS];
    Tensor *out;
} Trial;

static Status call(Trial *t)
{
    const CallBeside one = { .node = t->node, .in = t->in, .out = &t->out, .kept = &t->kept };
    memset(t->out->data, 0x55, t->out->bytes);
    return caller_call_one(t->caller, &one);
}

/* From now on the call is on other data, but for the weights. */
static const Tensor *with_data(Trial *t, uint64_t seed)
{
    Build b = fresh(t->c);
    Rng rng = { seed };
    t->node = t->k->build(&b, &rng);
    assert_non_null(t->node);
    for (int i = 0; i < t->node->n_in; i++)
        t->in[i] = i == t->k->weights && t->in[i] ? t->in[i] : constant(in(t->node, i));
    const Tensor *want = value_of(t->c, t->node, NULL);
    t->out = tensor_new(&t->c->arena, want->type);
    return want;
}

static void check_case(Trial *t, _Atomic int *stop)
{
    const Tensor *want = with_data(t, 1);
    *stop = 1; /* nothing is filled */
    require(call(t) == INTERRUPTED && !t->kept.made, "%s: stopped, it has made it\n", t->k->name);
    *stop = 0;
    require(call(t) == OK && tensor_same(t->out, want), "%s: the first run differs\n", t->k->name);
    require(t->kept.at && t->kept.made && t->kept.operand == t->k->weights, "%s: nothing is kept\n", t->k->name);
    want = with_data(t, 2);
    memset(t->in[t->k->weights]->data, 1, t->in[t->k->weights]->bytes); /* nobody looks there any more */
    require(call(t) == OK && tensor_same(t->out, want), "%s: a later run differs\n", t->k->name);
    t->kept.constants = 0; /* it is no constant: now it is looked at */
    require(call(t) == OK && !tensor_same(t->out, want), "%s: something is kept of what changes\n", t->k->name);
}

static void check_refused(Trial *t)
{
    t->in[t->k->weights] = NULL;
    t->kept = (EvalKept){ .keeper = t->kept.keeper, .constants = 1u << t->k->weights };
    *t->kept.keeper->left = 100;
    const Tensor *want = with_data(t, 3);
    for (int i = 0; i < 2; i++)
        require(call(t) == OK && tensor_same(t->out, want), "%s: without room it differs\n", t->k->name);
    require(!t->kept.at && *t->kept.keeper->left == 100, "%s: it takes more than it may\n", t->k->name);
}

static Status all_cases(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        _Atomic int stop = 0;
        Arena scratch;
        size_t left = 1 << 20;
        const EvalKeeper keeper = { &c->heap, &left };
        const EvalOptions options = { .stop = &stop };
        arena_open(&scratch, &c->memory);
        Trial t = { .c = c,
                    .k = &cases[i],
                    .caller = caller_open(&c->ir, &options, &c->arena, &c->heap, &scratch),
                    .kept = { .keeper = &keeper, .constants = 1u << cases[i].weights } };
        check_case(&t, &stop);
        check_refused(&t);
        caller_close(t.caller);
        arena_close(&scratch);
    }
    return OK;
}

static void what_is_made_of_constants_stays(void **state)
{
    (void)state;
    with_context(all_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_made_of_constants_stays) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
