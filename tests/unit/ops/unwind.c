/* Gradients through bodies: `if`, `scan` and `loop`, in each other too, against central differences in f64; what is
 * drawn in a turn is drawn again when the turn is taken back. */
#include <math.h>

#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "testing.h"

enum { MOST_INPUTS = 8 };

typedef struct Case {
    const char *name, *text; /* all float inputs are differentiated, all float results weigh */
} Case;

static const Case cases[] = {
    { "if", "graph @f(%c: bool[], %x: f64[3], %w: f64[3], %u: f64[]) -> (%a, %b) {\n"
            "  %t: (f64[3], f64[3]) = if(%c, %x, %w, %u) { (%p: f64[3], %q: f64[3], %r: f64[]) -> (%m, %n)\n"
            "    %m: f64[3] = mul(%p, %q)\n"
            "    %n: f64[3] = mul(%m, %r)\n"
            "  } { (%p: f64[3], %q: f64[3], %r: f64[]) -> (%m, %m)\n"
            "    %e: f64[3] = exp(%p)\n"
            "    %m: f64[3] = mul(%e, %e)\n"
            "  }\n"
            "  %a: f64[3] = part(%t, index=0)\n"
            "  %b: f64[3] = part(%t, index=1)\n"
            "}\n" },
    { "if without a tuple", "graph @f(%c: bool[], %x: f64[3]) -> (%y) {\n"
                            "  %t: f64[3] = if(%c, %x) { (%p: f64[3]) -> (%m)\n"
                            "    %m: f64[3] = tanh(%p)\n"
                            "  } { (%p: f64[3]) -> (%p)\n"
                            "  }\n"
                            "  %y: f64[3] = mul(%t, %t)\n"
                            "}\n" },
    { "scan", "graph @f(%s: f64[2], %x: f64[4,2], %z: f64[2,4], %w: f64[2]) -> (%a, %b) {\n"
              "  %t: (f64[2], f64[2,4]) = scan(%s, %x, %z, %w, num_scan_inputs=2, operands=3,\n"
              "      scan_input_axes=[0, 1], scan_input_directions=[0, 1], scan_output_axes=[-1],\n"
              "      scan_output_directions=[1]) { (%h: f64[2], %u: f64[2], %v: f64[2], %k: f64[2]) -> (%n, %o)\n"
              "    %g: f64[2] = mul(%h, %k)\n"
              "    %i: f64[2] = add(%g, %u)\n"
              "    %n: f64[2] = tanh(%i)\n"
              "    %o: f64[2] = mul(%n, %v)\n"
              "  }\n"
              "  %a: f64[2] = part(%t, index=0)\n"
              "  %b: f64[2,4] = part(%t, index=1)\n"
              "}\n" },
    { "scan of one result", "graph @f(%x: f64[4,2], %w: f64[]) -> (%b) {\n"
                            "  %t: f64[4,2] = scan(%x, %w, num_scan_inputs=1, operands=1)\n"
                            "      { (%u: f64[2], %k: f64[]) -> (%n)\n"
                            "    %i: f64[2] = mul(%u, %k)\n"
                            "    %n: f64[2] = sigmoid(%i)\n"
                            "  }\n"
                            "  %b: f64[4,2] = mul(%t, %t)\n"
                            "}\n" },
    { "a state nobody asks for", "graph @f(%x: f64[3]) -> (%b) {\n"
                                 "  const %o: f64[] = 0.5\n"
                                 "  const %m: i64[] = 2\n"
                                 "  %t: (f64[], i64[], f64[3]) = scan(%o, %m, %x, num_scan_inputs=1)\n"
                                 "      { (%h: f64[], %i: i64[], %u: f64[]) -> (%n, %j, %n)\n"
                                 "    const %one: i64[] = 1\n"
                                 "    %j: i64[] = add(%i, %one)\n"
                                 "    %f: f64[] = cast(%i, to=f64)\n"
                                 "    %g: f64[] = mul(%h, %u)\n"
                                 "    %n: f64[] = add(%g, %f)\n"
                                 "  }\n"
                                 "  %b: f64[3] = part(%t, index=2)\n"
                                 "}\n" },
    { "loop", "graph @f(%x: f64[2], %w: f64[2,2]) -> (%a, %b) {\n"
              "  const %m: i64[] = 3\n"
              "  %t: (f64[2], f64[3,2]) = loop(%m, _, %x, %w, operands=3)\n"
              "      { (%i: i64[], %c: bool[], %h: f64[2], %k: f64[2,2]) -> (%c, %n, %o)\n"
              "    %f: f64[] = cast(%i, to=f64)\n"
              "    %g: f64[2] = matmul(%k, %h)\n"
              "    %n: f64[2] = sin(%g)\n"
              "    %o: f64[2] = mul(%n, %f)\n"
              "  }\n"
              "  %a: f64[2] = part(%t, index=0)\n"
              "  %b: f64[3,2] = part(%t, index=1)\n"
              "}\n" },
    { "loop that ends by itself", "graph @f(%x: f64[2]) -> (%t) {\n"
                                  "  const %m: i64[] = 9\n"
                                  "  const %go: bool[] = true\n"
                                  "  %t: f64[2] = loop(%m, %go, %x)\n"
                                  "      { (%i: i64[], %c: bool[], %h: f64[2]) -> (%d, %n)\n"
                                  "    const %three: i64[] = 3\n"
                                  "    %d: bool[] = less(%i, %three)\n"
                                  "    %g: f64[2] = exp(%h)\n"
                                  "    %n: f64[2] = sin(%g)\n"
                                  "  }\n"
                                  "}\n" },
    { "loop that never runs", "graph @f(%x: f64[2], %w: f64[2]) -> (%t) {\n"
                              "  const %m: i64[] = 0\n"
                              "  %t: f64[2] = loop(%m, _, %x, %w, operands=3)\n"
                              "      { (%i: i64[], %c: bool[], %h: f64[2], %k: f64[2]) -> (%c, %n)\n"
                              "    %n: f64[2] = mul(%h, %k)\n"
                              "  }\n"
                              "}\n" },
    { "scan in if in loop", "graph @f(%x: f64[2], %z: f64[3,2], %w: f64[2]) -> (%t) {\n"
                            "  const %m: i64[] = 4\n"
                            "  %t: f64[2] = loop(%m, _, %x, %z, %w, operands=3)\n"
                            "      { (%i: i64[], %c: bool[], %h: f64[2], %l: f64[3,2], %k: f64[2]) -> (%c, %n)\n"
                            "    const %two: i64[] = 2\n"
                            "    %r: i64[] = mod(%i, %two)\n"
                            "    %odd: bool[] = cast(%r, to=bool)\n"
                            "    %n: f64[2] = if(%odd, %h, %l, %k) { (%p: f64[2], %q: f64[3,2], %v: f64[2]) -> (%d)\n"
                            "      %d: f64[2] = scan(%p, %q, %v, num_scan_inputs=1, operands=2)\n"
                            "          { (%h: f64[2], %u: f64[2], %k: f64[2]) -> (%n)\n"
                            "        %g: f64[2] = mul(%h, %k)\n"
                            "        %i: f64[2] = add(%g, %u)\n"
                            "        %n: f64[2] = tanh(%i)\n"
                            "      }\n"
                            "    } { (%p: f64[2], %q: f64[3,2], %v: f64[2]) -> (%d)\n"
                            "      %d: f64[2] = mul(%p, %v)\n"
                            "    }\n"
                            "  }\n"
                            "}\n" },
    { "flex attention", "graph @f(%q: f64[1,4,2,3], %k: f64[1,2,3,3], %v: f64[1,2,3,2], %z: f64[]) -> (%y) {\n"
                        "  %y: f64[1,4,2,2] = flex_attention(%q, %k, %v, %z, operands=3)\n"
                        "      { (%m: f64[1,4,2,3], %c: f64[]) -> (%n)\n"
                        "    %d: f64[1,4,2,3] = div(%m, %c)\n"
                        "    %t: f64[1,4,2,3] = tanh(%d)\n"
                        "    %n: f64[1,4,2,3] = mul(%t, %c)\n"
                        "  } { (%m: f64[1,4,2,3], %c: f64[]) -> (%m)\n"
                        "  }\n"
                        "}\n" },
    { "gradient of a gradient",
      "graph @f(%x: f64[2], %w: f64[2]) -> (%y) {\n"
      "  %t: (f64[2], f64[2]) = gradient(%x, %w, %w, xs=[\"x\", \"w\"], y=\"y\", operands=2)\n"
      "      { (%p: f64[?], %q: f64[?], %k: f64[2]) -> (%y)\n"
      "    %e: f64[?] = exp(%p)\n"
      "    %m: f64[?] = mul(%e, %q)\n"
      "    %y: f64[2] = mul(%m, %k)\n"
      "  }\n"
      "  %a: f64[2] = part(%t, index=0)\n"
      "  %b: f64[2] = part(%t, index=1)\n"
      "  %y: f64[2] = mul(%a, %b)\n"
      "}\n" },
    { "a scan taken back twice",
      "graph @f(%s: f64[2], %x: f64[3,2], %w: f64[2]) -> (%y) {\n"
      "  %t: (f64[2], f64[2]) = gradient(%s, %w, %x, xs=[\"s\", \"w\"], y=\"y\", operands=2)\n"
      "      { (%p: f64[2], %q: f64[2], %k: f64[3,2]) -> (%y)\n"
      "    %y: f64[2] = scan(%p, %k, %q, num_scan_inputs=1, operands=2)\n"
      "        { (%h: f64[2], %u: f64[2], %k: f64[2]) -> (%n)\n"
      "      %r: f64[2] = random_uniform(dtype=f64, high=2, low=1, shape=[2], stream=3)\n"
      "      %g: f64[2] = mul(%h, %k)\n"
      "      %i: f64[2] = add(%g, %u)\n"
      "      %j: f64[2] = mul(%i, %r)\n"
      "      %n: f64[2] = sin(%j)\n"
      "    }\n"
      "  }\n"
      "  %a: f64[2] = part(%t, index=0)\n"
      "  %b: f64[2] = part(%t, index=1)\n"
      "  %y: f64[2] = mul(%a, %b)\n"
      "}\n" },
    { "draws in turns", "graph @f(%x: f64[5], %w: f64[5]) -> (%b) {\n"
                        "  const %ratio: f64[] = 0.5\n"
                        "  const %on: bool[] = true\n"
                        "  const %m: i64[] = 3\n"
                        "  %t: f64[5] = loop(%m, _, %x, %w, %ratio, %on, operands=3)\n"
                        "      { (%i: i64[], %c: bool[], %h: f64[5], %k: f64[5], %r: f64[], %tr: bool[]) -> (%c, %n)\n"
                        "    const %two: i64[] = 2\n"
                        "    %a: f64[5] = loop(%two, _, %h, %r, %tr, operands=3)\n"
                        "        { (%i: i64[], %c: bool[], %h: f64[5], %r: f64[], %tr: bool[]) -> (%c, %n)\n"
                        "      %u: f64[5] = random_uniform_like(%h, high=2, low=1, stream=5)\n"
                        "      %s: f64[5] = sin(%h)\n"
                        "      %n: f64[5] = mul(%s, %u)\n"
                        "    }\n"
                        "    %u: f64[5] = random_uniform_like(%h, high=2, low=-1, stream=4)\n"
                        "    %g: f64[5] = mul(%a, %u)\n"
                        "    %n: f64[5] = add(%g, %k)\n"
                        "  }\n"
                        "  %b: f64[5] = mul(%t, %t)\n"
                        "}\n" },
};

typedef struct Trial {
    Context *c;
    Graph *g;
    Tensor *x[MOST_INPUTS];
} Trial;

static bool is_f64(const Node *n)
{
    return n->type->dtype == F64;
}

static double weight(int result, int64_t i)
{
    return 0.5 + fmod(0.38196601125 * (double)(i + 3 * result + 1), 1);
}

/* Before the backward side is there: the weighted sum of the results. */
static double weighed(Trial *t, int n_results)
{
    const EvalOptions options = { .seed = 3 };
    Tensor *out[16];
    double sum = 0;
    assert_true(graph_n_results(t->g) <= 16);
    assert_int_equal(evaluate(t->g, &options, &t->c->heap, (const Tensor *const *)t->x, out), OK);
    for (int r = 0; r < graph_n_results(t->g); r++) {
        for (int64_t i = 0; r < n_results && i < tensor_elements(out[r]); i++)
            sum += weight(r, i) * tensor_get_f64(out[r], i);
        if (out[r])
            tensor_drop(&t->c->heap, out[r]);
    }
    return sum;
}

/* Adds the gradients of the float inputs as results; one for each of them. */
static Status differentiate(Trial *t, Node **dx)
{
    Graph *g = t->g;
    Build b = build_at_end(g);
    const int n_y = graph_n_results(g);
    Node *y[MOST_INPUTS], *dy[MOST_INPUTS], *x[MOST_INPUTS];
    int n = 0;
    for (int r = 0; r < n_y; r++) {
        y[r] = graph_result(g, r);
        Tensor *w = tensor_new(&t->c->arena, y[r]->type);
        for (int64_t i = 0; i < tensor_elements(w); i++)
            tensor_set_f64(w, i, weight(r, i));
        dy[r] = build_const(&b, w);
    }
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_f64(g->inputs[i]))
            x[n++] = g->inputs[i];
    const ReverseQuery q = { .n_y = n_y, .y = y, .dy = dy, .n_x = n, .x = x };
    ReverseResult r;
    TRY(reverse(&b, &q, &t->c->arena, &r));
    for (size_t i = 0; i < r.n_stops; i++)
        print_error("the gradient ends at %s, operand %d\n", op_of(r.stops[i].node)->name, r.stops[i].operand);
    assert_int_equal(r.n_stops, 0);
    for (int i = 0; i < n; i++)
        dx[i] = r.dx[i];
    return OK;
}

static double difference(Trial *t, int input, int64_t i, int n_results)
{
    const double h = 1e-4, x = tensor_get_f64(t->x[input], i);
    static const double step[4] = { -2, -1, 1, 2 };
    double v[4];
    for (int k = 0; k < 4; k++) {
        tensor_set_f64(t->x[input], i, x + step[k] * h);
        v[k] = weighed(t, n_results);
    }
    tensor_set_f64(t->x[input], i, x);
    return (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h);
}

static int check_inputs(Trial *t, Tensor *const *dx, int n_results)
{
    int bad = 0, elements = 0;
    for (size_t i = 0, k = 0; i < t->g->n_inputs; i++) {
        if (!is_f64(t->g->inputs[i]))
            continue;
        const Tensor *have = dx[k++];
        for (int64_t e = 0; e < tensor_elements(t->x[i]); e++, elements++) {
            const double want = difference(t, (int)i, e, n_results), got = have ? tensor_get_f64(have, e) : 0;
            if (!(fabs(want - got) <= 1e-7 * (1 + fabs(want)))) {
                print_error("input %zu, element %d: gradient %.12g, difference %.12g\n", i, (int)e, got, want);
                bad++;
            }
        }
    }
    assert_true(elements > 0);
    return bad;
}

/* Twice where an `if` is asked: once for each branch. */
static int check_case(Context *c, const Case *k, bool branch)
{
    Module *m;
    Trial t = { .c = c };
    Node *dx[MOST_INPUTS], *results[2 * MOST_INPUTS];
    Tensor *out[2 * MOST_INPUTS];
    assert_int_equal(parse_module(&c->ir, &c->arena, str(k->text), k->name, NULL, NULL, &m), OK);
    t.g = m->graphs[0];
    int n = 0;
    for (size_t i = 0; i < t.g->n_inputs; i++) {
        t.x[i] = tensor_new(&c->arena, t.g->inputs[i]->type);
        for (int64_t e = 0; e < tensor_elements(t.x[i]); e++)
            if (is_f64(t.g->inputs[i]))
                tensor_set_f64(t.x[i], e, 0.3 + 0.9 * fmod(0.618034 * (double)(e + 5 * (int64_t)i + 1), 1));
            else
                tensor_set_i64(t.x[i], e, branch);
        n += is_f64(t.g->inputs[i]);
    }
    const int n_y = graph_n_results(t.g);
    assert_int_equal(differentiate(&t, dx), OK);
    for (int i = 0; i < n_y; i++)
        results[i] = graph_result(t.g, i);
    for (int i = 0; i < n; i++)
        results[n_y + i] = dx[i];
    graph_return(t.g, n_y + n, results, NULL);
    const EvalOptions options = { .seed = 3 };
    assert_int_equal(evaluate(t.g, &options, &c->heap, (const Tensor *const *)t.x, out), OK);
    const int bad = check_inputs(&t, out + n_y, n_y);
    for (int i = 0; i < n_y + n; i++)
        if (out[i])
            tensor_drop(&c->heap, out[i]);
    return bad;
}

static Status gradients_agree(void *arg)
{
    Context *c = arg;
    int bad = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int branch = 0; branch < 2; branch++) {
            const int wrong = check_case(c, &cases[i], branch);
            if (wrong)
                print_error("%s, branch %d: %d elements\n", cases[i].name, branch, wrong);
            bad += wrong;
        }
    assert_int_equal(bad, 0);
    return OK;
}

static void test_gradients_agree(void **state)
{
    (void)state;
    with_context(gradients_agree);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gradients_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
