/* Convolutions, pools, places and spectra against what PyTorch gives in f64, values and gradients
 * (tests/data/windows.py); and the cofactors of singular matrices against their minors. */
#include <math.h>

#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "testing.h"

/* A call of f64 operands that are waves; what reaches its result, of every operand. */
typedef struct Stored {
    const char *text;
    const double *y;
    struct {
        double scale, shift;
        const double *gradient;
    } of[3];
} Stored;

#include "data/windows.h"

static Tensor *wave(Context *c, int i, const Type *type, double scale, double shift)
{
    Tensor *t = tensor_new(&c->arena, type);
    for (int64_t k = 0; k < tensor_elements(t); k++)
        tensor_set_f64(t, k, scale * sin(0.7 * (double)(k + 1) + i) + shift);
    return t;
}

/* How many of the numbers are not those stored, 1 at most. */
static int differs(const Stored *s, const char *what, const Tensor *got, const double *want)
{
    for (int64_t k = 0; k < tensor_elements(got); k++) {
        const double v = tensor_get_f64(got, k);
        if (fabs(v - want[k]) <= 1e-9 * (1 + fabs(want[k])))
            continue;
        print_error("%s%s, element %d is %.12g, not %.12g\n", s->text, what, (int)k, v, want[k]);
        return 1;
    }
    return 0;
}

/* The graph with the gradients of its inputs as further results. */
static Status add_gradients(Context *c, Graph *g)
{
    Build b = build_at_end(g);
    Node *y = graph_result(g, 0), *results[4];
    Tensor *reaching = tensor_new(&c->arena, y->type);
    for (int64_t k = 0; k < tensor_elements(reaching); k++)
        tensor_set_f64(reaching, k, cos(0.3 * (double)(k + 1)));
    Node *dy = build_const(&b, reaching);
    const int n = (int)g->n_inputs;
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = n, .x = g->inputs };
    ReverseResult r;
    TRY(reverse(&b, &q, &c->arena, &r));
    results[0] = graph_result(g, 0); /* a composite has been replaced */
    for (int i = 0; i < n; i++)
        results[1 + i] = r.dx[i] ? r.dx[i] : CALL(&b, sub, g->inputs[i], g->inputs[i]);
    graph_return(g, 1 + n, results, NULL);
    return b.status;
}

static int check(Context *c, const Stored *s)
{
    static const char *const names[] = { "dx0", "dx1", "dx2" };
    Module *m;
    Tensor *x[3], *out[4];
    int bad = 0;
    c->last = NULL;
    if (parse_module(&c->ir, &c->arena, str(s->text), "stored", NULL, NULL, &m) != OK)
        return print_error("%s%s\n", s->text, c->last), 1;
    Graph *g = m->graphs[0];
    const int n = (int)g->n_inputs;
    for (int i = 0; i < n; i++)
        x[i] = wave(c, i, g->inputs[i]->type, s->of[i].scale, s->of[i].shift);
    if (add_gradients(c, g) != OK || evaluate(g, NULL, &c->heap, (const Tensor *const *)x, out) != OK)
        return print_error("%s%s\n", s->text, c->last ? c->last : "?"), 1;
    bad += differs(s, "the value", out[0], s->y);
    for (int i = 0; i < n; i++)
        bad += differs(s, names[i], out[1 + i], s->of[i].gradient);
    for (int i = 0; i <= n; i++)
        tensor_drop(&c->heap, out[i]);
    return bad;
}

static Status stored_ones_agree(void *arg)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(stored); i++)
        bad += check(arg, &stored[i]);
    assert_int_equal(bad, 0);
    return OK;
}

/* ---- cofactors ---- */

/* The determinant of a without row r and column q. */
static double minor_of(const double *a, int n, int r, int q)
{
    double m[9];
    int at = 0;
    for (int i = 0; i < n * n; i++)
        if (i / n != r && i % n != q)
            m[at++] = a[i];
    if (n == 2)
        return m[0];
    if (n == 3)
        return m[0] * m[3] - m[1] * m[2];
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

static int check_cofactors(Context *c, int n, const double *a)
{
    const int64_t dims[] = { n, n };
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F64, 2, dims)), *out;
    for (int i = 0; i < n * n; i++)
        tensor_set_f64(x, i, a[i]);
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Node *y = CALL(&b, det_grad, build_const(&b, x), build_scalar(&b, F64, 2));
    int bad = 0;
    graph_return(g, 1, &y, NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, NULL, &out), OK);
    for (int i = 0; i < n * n; i++) {
        const double want = 2 * ((i / n + i % n) % 2 ? -1 : 1) * minor_of(a, n, i / n, i % n);
        if (fabs(tensor_get_f64(out, i) - want) > 1e-12) {
            print_error("cofactor %d of %d by %d is %g, not %g\n", i, n, n, tensor_get_f64(out, i), want);
            bad = 1;
        }
    }
    tensor_drop(&c->heap, out);
    return bad;
}

static Status cofactors_hold(void *arg)
{
    static const double regular[] = { 2, -1, 3, 0, 1, 4, -2, 5, 1 }, one_short[] = { 1, 2, 3, 2, 4, 6, 1, 0, 1 },
                        two_short[] = { 1, 2, 3, 2, 4, 6, 3, 6, 9 }, zeros[16] = { 0 },
                        four[] = { 1, 2, 0, 1, 3, 1, 1, 0, 4, 3, 1, 1, 0, 1, 2, 5 }, pair[] = { 1, 2, 2, 4 };
    Context *c = arg;
    int bad = check_cofactors(c, 3, regular) + check_cofactors(c, 3, one_short) + check_cofactors(c, 3, two_short);
    bad += check_cofactors(c, 4, zeros) + check_cofactors(c, 4, four) + check_cofactors(c, 2, pair);
    assert_int_equal(bad, 0);
    return OK;
}

static void windows_agree_with_pytorch(void **state)
{
    (void)state;
    with_context(stored_ones_agree);
}

static void cofactors_are_minors(void **state)
{
    (void)state;
    with_context(cofactors_hold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_agree_with_pytorch),
        cmocka_unit_test(cofactors_are_minors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
