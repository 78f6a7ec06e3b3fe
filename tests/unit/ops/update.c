/* One step of each optimizer, repeated: against PyTorch's own, LAMB's and Lion's formulas (tests/data/optimizers.py). */
#include <math.h>

#include "ops/update/update.h"
#include "support/language.h"
#include "unit/check.h"

enum { N = 4, MARKS = 3 };
static const int marks[MARKS] = { 1, 10, 100 };

typedef struct Stored {
    const char *op;
    int states;
    const char *attributes;
    double lr;
    double x[2][MARKS][N]; /* in f32 and in f64 */
} Stored;

#include "data/optimizers.h"

static double begin(int i)
{
    return cos(1.3 * (i + 1));
}

static double gradient(int i, int step)
{
    return sin(0.7 * (i + 1) + 0.3 * step) + 0.25;
}

/* (parameter, gradient, lr, step, states..) -> (parameter, states..) */
static Graph *call(Language *l, const Stored *s, const char *type)
{
    Text t;
    text_open(&t, &l->arena);
    text_printf(&t, "graph @f(%%x: %s[%d], %%g: %s[%d], %%lr: %s[], %%t: i64[]", type, N, type, N, type);
    for (int i = 0; i < s->states; i++)
        text_printf(&t, ", %%s%d: %s[%d]", i, type, N);
    text_add(&t, ") -> (");
    for (int i = 0; i <= s->states; i++)
        text_printf(&t, "%s%%y%d", i ? ", " : "", i);
    text_add(&t, ") {\n");
    text_printf(&t, s->states ? "%%u: (" : "%%y0: ");
    for (int i = 0; i <= s->states; i++)
        text_printf(&t, "%s%s[%d]", i ? ", " : "", type, N);
    text_printf(&t, "%s = update_%s(%%x, %%g, %%lr, %%t", s->states ? ")" : "", s->op);
    for (int i = 0; i < s->states; i++)
        text_printf(&t, "%s, %%s%d", i ? "" : ", _", i);
    text_printf(&t, "%s%s)\n", *s->attributes ? ", " : "", s->attributes);
    for (int i = 0; s->states && i <= s->states; i++)
        text_printf(&t, "%%y%d: %s[%d] = part(%%u, index=%d)\n", i, type, N, i);
    text_add(&t, "}\n");
    Module *m = language_parse(l, text_get(&t), NULL);
    check_that(m, "%s%s", text_get(&t), text_get(&l->messages));
    return m->graphs[0];
}

static Tensor *tensor_of(Language *l, Heap *heap, DType dtype, int n)
{
    const int64_t dims[] = { n };
    return tensor_alloc(heap, type_tensor(&l->ir.types, dtype, n > 0, dims));
}

/* Runs 100 steps; gives the largest difference from what is stored, relative to 1 and to what is stored. */
static double farthest(Language *l, const Stored *s, DType dtype)
{
    Heap heap;
    Graph *g = call(l, s, dtype_name(dtype));
    Tensor *in[4 + UPDATE_STATES], *out[1 + UPDATE_STATES];
    double most = 0;
    heap_open(&heap, &l->memory);
    for (int i = 0; i < 4 + s->states; i++) {
        in[i] = tensor_of(l, &heap, i == 3 ? I64 : dtype, i == 2 || i == 3 ? 0 : N);
        for (int64_t k = 0; k < tensor_elements(in[i]); k++)
            if (i == 3)
                tensor_set_i64(in[i], k, 0);
            else
                tensor_set_f64(in[i], k, i == 0 ? begin((int)k) : i == 2 ? s->lr : 0);
    }
    for (int step = 1, mark = 0; step <= marks[MARKS - 1]; step++) {
        tensor_set_i64(in[3], 0, step);
        for (int k = 0; k < N; k++)
            tensor_set_f64(in[1], k, gradient(k, step));
        check_that(evaluate(g, NULL, &heap, (const Tensor *const *)in, out) == OK, "%s", text_get(&l->messages));
        for (int i = 0; i <= s->states; i++) {
            Tensor **old = &in[i ? 3 + i : 0];
            tensor_drop(&heap, *old);
            *old = out[i];
        }
        if (step != marks[mark])
            continue;
        for (int k = 0; k < N; k++) {
            const double want = s->x[dtype == F64][mark][k],
                         miss = fabs(tensor_get_f64(in[0], k) - want) / (1 + fabs(want));
            most = miss > most || miss != miss ? miss : most;
        }
        mark++;
    }
    for (int i = 0; i < 4 + s->states; i++)
        tensor_drop(&heap, in[i]);
    heap_close(&heap);
    return most;
}

static void steps_agree(DType dtype, double bound)
{
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
        Language l;
        language_open(&l);
        const double most = farthest(&l, &stored[i], dtype);
        check_that(most <= bound, "update_%s(%s) in %s: off by %g", stored[i].op, stored[i].attributes,
                   dtype_name(dtype), most);
        language_close(&l);
    }
}

static void steps_agree_in_f32(void **state)
{
    (void)state;
    steps_agree(F32, 1e-6);
}

static void steps_agree_in_f64(void **state)
{
    (void)state;
    steps_agree(F64, 1e-12);
}

/* What the stored tests of ONNX leave out: the first step, decay behind the step, lists of several types. */
static void onnx_adam_follows_its_formula(void **state)
{
    static const char text[] =
        "graph @f() -> (%x, %y) {\n"
        "const %r: f32[] = 0.5\n"
        "const %t: i64[] = 0\n"
        "const %x0: f64[1] = [2]\n"
        "const %y0: f32[] = -1\n"
        "const %g: f64[1] = [3]\n"
        "const %h: f32[] = 0.25\n"
        "const %v: f64[1] = [4]\n"
        "const %z: f32[] = 0\n"
        "%a: (f64[1], f32[], f64[1], f32[], f64[1], f32[]) = adam(%r, %t, %x0, %y0, %g, %h, %v, %z, %v, %z, alpha=0.5,"
        " beta=0.25, epsilon=0.5, norm_coefficient=0.125, norm_coefficient_post=0.0625)\n"
        "%x: f64[1] = part(%a, index=0)\n"
        "%y: f32[] = part(%a, index=1)\n"
        "}\n";
    static const double from[2][4] = { { 2, 3, 4, 4 }, { -1, 0.25, 0, 0 } };
    Language l;
    Heap heap;
    Tensor *out[2];
    (void)state;
    language_open(&l);
    heap_open(&heap, &l.memory);
    Module *m = language_parse(&l, text, NULL);
    check_that(m && evaluate(m->graphs[0], NULL, &heap, NULL, out) == OK, "%s", text_get(&l.messages));
    for (int i = 0; i < 2; i++) {
        const double x = from[i][0], g = from[i][1] + 0.125 * x, v = 0.5 * from[i][2] + 0.5 * g;
        const double h = 0.25 * from[i][3] + 0.75 * g * g, want = 0.9375 * (x - 0.5 * v / (sqrt(h) + 0.5));
        check_that(fabs(tensor_get_f64(out[i], 0) - want) < (i ? 1e-6 : 1e-14), "%d: %.17g, not %.17g", i,
                   tensor_get_f64(out[i], 0), want);
        tensor_drop(&heap, out[i]);
    }
    heap_close(&heap);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_agree_in_f32),
        cmocka_unit_test(steps_agree_in_f64),
        cmocka_unit_test(onnx_adam_follows_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
