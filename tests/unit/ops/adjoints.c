/* What adjoints give where differences cannot say: at kinks and ties, at zeros and poles, for exponents that are
 * constants.  The numbers are PyTorch's unless the name says otherwise (docs/ops.md, Adjoints). */
#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "support/calls.h"

enum { MOST = 16 };

/* A graph of constants whose results are y, what reaches it, and the values whose gradients are wanted. */
typedef struct Corner {
    const char *name, *results, *body;
    double want[MOST]; /* the gradients, one behind the other */
} Corner;

#define X(type, values)  "const %x: " type " = " values "\n"
#define Y(type, values)  "const %y: " type " = " values "\n"
#define Z(type, values)  "const %z: " type " = " values "\n"
#define DY(type, values) "const %dy: " type " = " values "\n"
#define ONES3            DY("f32[3]", "[1, 1, 1]")
#define OF_X             "%r, %dy, %x"
#define THIRD            (1.0 / 3)

static const Corner corners[] = {
    { "relu", OF_X, X("f32[3]", "[-1, 0, 2]") ONES3 "%r: f32[3] = relu(%x)", { 0, 0, 1 } },
    { "abs", OF_X, X("f32[3]", "[-1, 0, 2]") ONES3 "%r: f32[3] = abs(%x)", { -1, 0, 1 } },
    { "leaky_relu",
      OF_X,
      X("f32[3]", "[-1, 0, 2]") ONES3 "%r: f32[3] = leaky_relu(%x, alpha=0.25)",
      { 0.25, 0.25, 1 } },
    { "elu", OF_X, X("f32[2]", "[0, 2]") DY("f32[2]", "[1, 1]") "%r: f32[2] = elu(%x, alpha=0.5)", { 0.5, 1 } },
    { "celu", OF_X, X("f32[2]", "[0, -60]") DY("f32[2]", "[1, 1]") "%r: f32[2] = celu(%x, alpha=0.5)", { 1, 0 } },
    { "thresholded_relu",
      OF_X,
      X("f32[2]", "[1, 2]") DY("f32[2]", "[1, 1]") "%r: f32[2] = thresholded_relu(%x)",
      { 0, 1 } },
    { "hard_sigmoid",
      OF_X,
      X("f32[3]", "[-2, 0, 2]") ONES3 "%r: f32[3] = hard_sigmoid(%x, alpha=0.25)",
      { 0, 0.25, 0 } },
    { "hard_swish",
      OF_X,
      X("f32[5]", "[-4, -3, 0, 3, 4]") DY("f32[5]", "[1, 1, 1, 1, 1]") "%r: f32[5] = hard_swish(%x)",
      { 0, -0.5, 0.5, 1.5, 1 } },
    { "shrink", OF_X, X("f32[3]", "[-0.5, 0.5, 1]") ONES3 "%r: f32[3] = shrink(%x, bias=0.25)", { 0, 0, 1 } },
    { "sigmoid far out", OF_X, X("f32[3]", "[-200, 0, 200]") ONES3 "%r: f32[3] = sigmoid(%x)", { 0, 0.25, 0 } },
    { "softplus far out", OF_X, X("f32[3]", "[-200, 0, 200]") ONES3 "%r: f32[3] = softplus(%x)", { 0, 0.5, 1 } },
    { "p_relu",
      "%r, %dy, %x, %y",
      X("f32[3]", "[-1, 0, 2]") Y("f32[1]", "[0.5]") ONES3 "%r: f32[3] = p_relu(%x, %y)",
      { 0.5, 0.5, 1, -1 } },

    { "sqrt: 0 stays 0 (ours)",
      OF_X,
      X("f32[3]", "[0, 0, 4]") DY("f32[3]", "[0, 1, 1]") "%r: f32[3] = sqrt(%x)",
      { 0, INFINITY, 0.25 } },
    { "asin: 0 stays 0 (ours)",
      OF_X,
      X("f32[3]", "[1, -1, 0]") DY("f32[3]", "[0, 1, 1]") "%r: f32[3] = asin(%x)",
      { 0, INFINITY, 1 } },
    { "acos: 0 stays 0 (ours)",
      OF_X,
      X("f32[3]", "[1, -1, 0]") DY("f32[3]", "[0, 1, 1]") "%r: f32[3] = acos(%x)",
      { 0, -INFINITY, -1 } },

    { "to the power of 0",
      OF_X,
      X("f32[3]", "[-2, 0, 3]") Y("f32[]", "0") ONES3 "%r: f32[3] = pow(%x, %y)",
      { 0, 0, 0 } },
    { "of 1", OF_X, X("f32[3]", "[-2, 0, 3]") Y("f32[]", "1") ONES3 "%r: f32[3] = pow(%x, %y)", { 1, 1, 1 } },
    { "of 2", OF_X, X("f32[3]", "[-2, 0, 3]") Y("f32[]", "2") ONES3 "%r: f32[3] = pow(%x, %y)", { -4, 0, 6 } },
    { "of 3", OF_X, X("f32[3]", "[-2, 0, 3]") Y("i64[]", "3") ONES3 "%r: f32[3] = pow(%x, %y)", { 12, 0, 27 } },
    { "of 4", OF_X, X("f32[3]", "[-2, 0, 3]") Y("f32[]", "4") ONES3 "%r: f32[3] = pow(%x, %y)", { -32, 0, 108 } },
    { "of -1",
      OF_X,
      X("f32[3]", "[-2, 1, 4]") Y("f32[]", "-1") ONES3 "%r: f32[3] = pow(%x, %y)",
      { -0.25, -1, -0.0625 } },
    { "of 1/2 (ours: 0 stays 0)",
      OF_X,
      X("f32[3]", "[0, 1, 4]") Y("f32[]", "0.5") DY("f32[3]", "[0, 1, 1]") "%r: f32[3] = pow(%x, %y)",
      { 0, 0.5, 0.25 } },
    { "of 3/2", OF_X, X("f32[3]", "[0, 1, 4]") Y("f32[]", "1.5") ONES3 "%r: f32[3] = pow(%x, %y)", { 0, 1.5, 3 } },
    { "of several",
      OF_X,
      X("f32[3]", "[0, 0, -2]") Y("f32[3]", "[0, 2, 1]") ONES3 "%r: f32[3] = pow(%x, %y)",
      { 0, 0, 1 } },
    { "by exponent",
      "%r, %dy, %y",
      X("f32[3]", "[0, 2, -2]") Y("f32[3]", "[2, 3, 2]") ONES3 "%r: f32[3] = pow(%x, %y)",
      { 0, 5.545177444479562, NAN } },

    { "clip at its bounds",
      "%r, %dy, %x, %y, %z",
      X("f32[4]", "[-1, 0, 1, 2]") Y("f32[]", "0") Z("f32[]", "1")
          DY("f32[4]", "[1, 1, 1, 1]") "%r: f32[4] = clip(%x, %y, %z)",
      { 0, 1, 1, 0, 1, 1 } },
    { "clip with crossed bounds",
      "%r, %dy, %x, %y, %z",
      X("f32[3]", "[-1, 0.5, 2]") Y("f32[]", "1") Z("f32[]", "0") ONES3 "%r: f32[3] = clip(%x, %y, %z)",
      { 0, 0, 0, 0, 3 } },
    { "clip from above alone",
      "%r, %dy, %x, %z",
      X("f32[3]", "[-1, 0.5, 2]") Z("f32[1]", "[1]") ONES3 "%r: f32[3] = clip(%x, _, %z)",
      { 1, 1, 0, 1 } },
    { "two equal extremes",
      "%r, %dy, %x, %y",
      X("f32[3]", "[1, 2, 3]") Y("f32[3]", "[1, 3, 0]") ONES3 "%r: f32[3] = max(%x, %y)",
      { 0.5, 0, 1, 0.5, 1, 0 } },
    { "three equal extremes share (ours)",
      "%r, %dy, %x, %y, %z",
      X("f32[2]", "[1, 2]") Y("f32[2]", "[1, 0]") Z("f32[2]", "[1, 0]")
          DY("f32[2]", "[1, 1]") "%r: f32[2] = min(%x, %y, %z)",
      { THIRD, 0, THIRD, 0.5, THIRD, 0.5 } },
    { "what is not chosen adds no NaN",
      "%r, %dy, %x, %y",
      "const %c: bool[2] = [true, false]\n" X("f32[2]", "[1, nan]") Y("f32[2]", "[nan, 2]")
          DY("f32[2]", "[3, 4]") "%r: f32[2] = where(%c, %x, %y)",
      { 3, 0, 0, 4 } },

    { "equal elements of a reduce_max",
      OF_X,
      X("f32[4]", "[2, 1, 2, 0]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_max(%x)",
      { 0.5, 0, 0.5, 0 } },
    { "a product with a zero",
      OF_X,
      X("f32[3]", "[2, 0, 3]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_prod(%x)",
      { 0, 6, 0 } },
    { "a product with two",
      OF_X,
      X("f32[3]", "[0, 0, 3]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_prod(%x)",
      { 0, 0, 0 } },
    { "an l2 norm of 0", OF_X, X("f32[2]", "[0, 0]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_l2(%x)", { 0, 0 } },
    { "an l1 norm of 0", OF_X, X("f32[2]", "[0, 3]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_l1(%x)", { 0, 1 } },
    { "log_sum_exp of nothing (ours)",
      OF_X,
      X("f32[2]", "[-inf, -inf]") DY("f32[1]", "[1]") "%r: f32[1] = reduce_log_sum_exp(%x)",
      { 0, 0 } },
    { "running products over a zero",
      OF_X,
      "const %a: i64[] = 0\n" X("f32[4]", "[2, 0, 3, 5]") DY("f32[4]", "[1, 1, 1, 1]") "%r: f32[4] = cum_prod(%x, %a)",
      { 1, 2 + 6 + 30, 0, 0 } },
    { "running products over two",
      OF_X,
      "const %a: i64[] = 0\n" X("f32[4]", "[2, 0, 3, 0]") DY("f32[4]", "[1, 1, 1, 1]") "%r: f32[4] = cum_prod(%x, %a)",
      { 1, 2 + 6, 0, 0 } },
    { "a step", OF_X, X("f32[2]", "[1, 2]") DY("f32[2]", "[1, 1]") "%r: f32[2] = hardmax(%x)", { 0, 0 } },

    { "a rounding passes",
      OF_X,
      X("f32[2]", "[0.1, 7]") DY("f16[2]", "[1, 0.5]") "%r: f16[2] = cast(%x, to=f16)",
      { 1, 0.5 } },
    { "an integer does not",
      OF_X,
      X("f32[2]", "[0.1, 7]") DY("f32[2]", "[1, 0.5]") "%i: i32[2] = cast(%x, to=i32)\n%r: f32[2] = cast(%i, to=f32)",
      { 0, 0 } },
    { "the constant of a frame",
      "%r, %dy, %x, %y",
      "const %p: i64[2] = [1, 2]\n" X("f32[2]", "[7, 8]") Y("f32[]", "9")
          DY("f32[5]", "[1, 2, 3, 4, 5]") "%r: f32[5] = pad(%x, %p, %y)",
      { 2, 3, 1 + 4 + 5 } },
    { "frames longer than what they reflect",
      OF_X,
      "const %p: i64[2] = [3, 4]\n" X("f32[3]", "[7, 8, 9]")
          DY("f32[10]", "[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]") "%r: f32[10] = pad(%x, %p, mode=reflect)",
      { 8 + 128, 1 + 4 + 16 + 64 + 256, 2 + 32 + 512 } },
    { "parts that nobody reads",
      "%r, %dy, %x",
      "const %n: i64[2] = [1, 2]\n" X("f32[3]", "[7, 8, 9]")
          DY("f32[2]", "[1, 2]") "%s: (f32[1], f32[2]) = split(%x, %n)\n%r: f32[2] = part(%s, index=1)",
      { 0, 1, 2 } },

    { "a loss that ignores a broken score",
      OF_X,
      "const %t: i64[2] = [1, 0]\n" X("f32[2,2]", "[nan, nan, -1, -2]")
          DY("f32[]", "1") "%r: f32[] = negative_log_likelihood_loss(%x, %t, ignore_index=1)",
      { 0, 0, -1, 0 } },
    { "a softmax loss that does (ours)",
      OF_X,
      "const %t: i64[2] = [1, 0]\n" X("f32[2,2]", "[nan, nan, 3, 3]")
          DY("f32[]", "1") "%r: f32[] = softmax_cross_entropy_loss(%x, %t, ignore_index=1)",
      { 0, 0, -0.5, 0.5 } },
    { "a normalization of equal elements",
      OF_X,
      X("f32[1,2]", "[3, 3]") Y("f32[2]", "[1, 1]")
          DY("f32[1,2]", "[1, 3]") "%r: f32[1,2] = layer_normalization(%x, %y, epsilon=0.25)",
      { -2, 2 } },
    { "lp_normalization of zeros",
      OF_X,
      X("f32[2]", "[0, 0]") DY("f32[2]", "[1, 2]") "%r: f32[2] = lp_normalization(%x)",
      { 1, 2 } },
};

/* Replaces the results by the gradients of those from the third on. */
static Status turn_round(Context *c, Graph *g)
{
    Node *y = graph_result(g, 0), *dy = graph_result(g, 1), *x[4];
    const int n = graph_n_results(g) - 2;
    for (int i = 0; i < n; i++)
        x[i] = graph_result(g, i + 2);
    Build b = build_at_end(g);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = n, .x = x, .narrow = true };
    ReverseResult r;
    TRY(reverse(&b, &q, &c->arena, &r));
    for (int i = 0; i < n; i++)
        if (!r.dx[i])
            r.dx[i] = CALL(&b, sub, x[i], x[i]);
    graph_return(g, n, r.dx, NULL);
    return b.status;
}

static int check_corner(Context *c, const Corner *k)
{
    Text text;
    Module *m;
    Tensor *dx[4] = { NULL };
    int bad = 0, at_want = 0;
    text_open(&text, &c->arena);
    text_printf(&text, "graph @f() -> (%s) {\n%s\n}\n", k->results, k->body);
    if (parse_module(&c->ir, &c->arena, str(text_get(&text)), "corner.qir", NULL, NULL, &m) != OK ||
        turn_round(c, m->graphs[0]) != OK || evaluate(m->graphs[0], NULL, &c->heap, NULL, dx) != OK) {
        print_error("%s: %s\n", k->name, c->last ? c->last : "?");
        return 1;
    }
    for (int i = 0; i < graph_n_results(m->graphs[0]); i++) {
        for (int64_t e = 0; e < tensor_elements(dx[i]); e++, at_want++)
            if (!close_to(at(dx[i], e), k->want[at_want], 1e-6)) {
                print_error("%s: gradient %d, element %d is %g, not %g\n", k->name, i, (int)e, at(dx[i], e),
                            k->want[at_want]);
                bad++;
            }
        tensor_drop(&c->heap, dx[i]);
    }
    return bad;
}

static Status corners_are_as_stated(void *arg)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(corners); i++)
        bad += check_corner(arg, &corners[i]);
    assert_int_equal(bad, 0);
    return OK;
}

static void corners_hold(void **state)
{
    (void)state;
    with_context(corners_are_as_stated);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(corners_hold) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
