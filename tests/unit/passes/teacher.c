/* Teachers from words and back, and what imitating one adds to loss and gradients, against the formula in f64. */
#include "testing.h"

#include <math.h>
#include <string.h>

#include "ops/card/eval.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/teacher.h"
#include "support/calls.h"
#include "support/language.h"
#include "support/recipe.h"

/* ---- words ---- */

static Status words_come_back(void *arg)
{
    static const struct {
        const char *text, *back, *file; /* null: no file */
    } cases[] = {
        { "self", "self:temperature=4,weight=0.5", NULL },
        { "self:weight=1", "self:temperature=4,weight=1", NULL },
        { "big.onnx:temperature=2.5,weight=0.25,output=a:b", "big.onnx:temperature=2.5,weight=0.25,output=a:b",
          "big.onnx" },
        { "C:big.onnx", "C:big.onnx:temperature=4,weight=0.5", "C:big.onnx" },
        { "./self:temperature=1", "./self:temperature=1,weight=0.5", "./self" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Teacher t;
        assert_int_equal(teacher_read(&t, cases[i].text, &c->arena, &c->diag), OK);
        assert_string_equal(teacher_text(&c->arena, &t), cases[i].back);
        const char *file = teacher_file(&c->arena, cases[i].text);
        assert_true(!file == !cases[i].file && (!file || strcmp(file, cases[i].file) == 0));
    }
    return OK;
}

static Status each_mistake(void *arg)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        { ":weight=1", "which file? (FILE, or self)" },
        { "self:wieght=1", "self has no setting wieght\n  try: weight" },
        { "self:weight=0", "weight is '0', wanted is a number above 0, at most 1" },
        { "self:weight=1.5", "weight is '1.5', wanted is a number above 0, at most 1" },
        { "self:temperature=0", "temperature is '0', wanted is a number, 0.001 or more" },
        { "self:output=", "output is '', wanted is the name of an output" },
        { "self:weight=1,weight=1", "weight is there twice" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Teacher t;
        c->last = "";
        assert_int_equal(teacher_read(&t, cases[i].text, &c->arena, &c->diag), USAGE);
        require(strstr(c->last, cases[i].said) != NULL, "%s: %s\nnot: %s\n", cases[i].text, c->last, cases[i].said);
    }
    return OK;
}

static void words(void **state)
{
    (void)state;
    with_context(words_come_back);
    with_context(each_mistake);
}

/* ---- the formula ---- */

enum { ROWS = 6, INPUTS = 3, CLASSES = 4 };

typedef struct Lesson {
    double x[ROWS][INPUTS], own[INPUTS][CLASSES], theirs[INPUTS][CLASSES], weight[ROWS];
    int64_t target[ROWS];
} Lesson;

static double drawn(int i)
{
    return sin(12.9898 * i + 1.3) * 2;
}

/* Values that f32 has, so that both sides read the same. */
static void fill(Lesson *l, bool weighs)
{
    int n = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++)
            l->x[i][k] = (float)drawn(n++);
        l->target[i] = i % CLASSES;
        l->weight[i] = weighs ? (i == 1 ? 0 : (float)fabs(drawn(n++))) : 1;
    }
    for (int k = 0; k < INPUTS; k++)
        for (int c = 0; c < CLASSES; c++) {
            l->own[k][c] = (float)drawn(n++);
            l->theirs[k][c] = (float)drawn(n++);
        }
}

/* log softmax(x w / t) */
static void log_softmax(const double x[INPUTS], const double w[INPUTS][CLASSES], double t, double out[CLASSES])
{
    double most = -INFINITY, sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        out[c] = 0;
        for (int k = 0; k < INPUTS; k++)
            out[c] += x[k] * w[k][c] / t;
        most = fmax(most, out[c]);
    }
    for (int c = 0; c < CLASSES; c++)
        sum += exp(out[c] - most);
    for (int c = 0; c < CLASSES; c++)
        out[c] -= most + log(sum);
}

/* The loss, and its gradient with respect to the weights of the model. */
static double formula(const Lesson *l, double t, double share, double gradient[INPUTS][CLASSES])
{
    double loss = 0, all = 0;
    memset(gradient, 0, sizeof(double[INPUTS][CLASSES]));
    for (int i = 0; i < ROWS; i++)
        all += l->weight[i];
    for (int i = 0; i < ROWS; i++) {
        double plain[CLASSES], own[CLASSES], theirs[CLASSES], apart = 0;
        log_softmax(l->x[i], l->own, 1, plain);
        log_softmax(l->x[i], l->own, t, own);
        log_softmax(l->x[i], l->theirs, t, theirs);
        for (int c = 0; c < CLASSES; c++) {
            apart += exp(theirs[c]) * (theirs[c] - own[c]);
            const double of_task = exp(plain[c]) - (c == l->target[i]), of_teacher = t * (exp(own[c]) - exp(theirs[c]));
            for (int k = 0; k < INPUTS; k++)
                gradient[k][c] += l->x[i][k] * ((1 - share) * of_task + share * of_teacher) * l->weight[i] / all;
        }
        loss += ((1 - share) * -plain[l->target[i]] + share * t * t * apart) * l->weight[i] / all;
    }
    return loss;
}

/* ---- the graph ---- */

static Graph *parsed(Language *l, const char *text)
{
    Module *m = language_parse(l, text, NULL);
    require(m != NULL, "%s", text_get(&l->messages));
    return m->graphs[0];
}

static void put_matrix(Text *t, const double w[INPUTS][CLASSES])
{
    for (int i = 0; i < INPUTS * CLASSES; i++)
        text_printf(t, "%s%.9g", i ? ", " : "", w[i / CLASSES][i % CLASSES]);
}

static Graph *teacher_of(Language *l, const Lesson *v, const char *rows)
{
    Text t;
    text_open(&t, &l->arena);
    text_printf(&t, "graph @t(%%x: f32[%s,3]) -> (%%y) {\n    const %%w: f32[3,4] = [", rows);
    put_matrix(&t, v->theirs);
    text_printf(&t, "]\n    %%z: f32[%s,4] = matmul(%%x, %%w)\n    %%y: f32[%s,4] = softmax(%%z, axis=-1)\n}\n", rows,
                rows);
    return parsed(l, text_get(&t));
}

static Tensor *given(Language *l, const Node *n, const Lesson *v)
{
    Tensor *t = tensor_new(&l->arena, n->type);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const int k = (int)i;
        if (strcmp(n->name, "x") == 0)
            tensor_set_f64(t, i, v->x[k / INPUTS][k % INPUTS]);
        else if (strcmp(n->name, "w") == 0)
            tensor_set_f64(t, i, v->own[k / CLASSES][k % CLASSES]);
        else if (strcmp(n->name, "target") == 0)
            tensor_set_i64(t, i, v->target[k]);
        else
            tensor_set_f64(t, i, v->weight[k]);
    }
    return t;
}

/* One case: rows of the scores as "6" or "2,3". */
static void compare(const char *rows, const char *loss, const char *said, double t, double share, bool weighs)
{
    static const char *const passes[] = { "attach-loss", "attach-teacher", "differentiate" };
    Language l;
    Heap heap;
    Recipe r = { .n_groups = 0 };
    Lesson v;
    double gradient[INPUTS][CLASSES];
    language_open(&l);
    heap_open(&heap, &l.memory);
    fill(&v, weighs);
    const double wanted = formula(&v, t, share, gradient);
    const char *options = arena_printf(&l.arena, "--loss %s --teacher t%s", loss, said);
    Status status = recipe_from_options(&r, &l.ir, &l.arena, str(options), NULL);
    require(status == OK, "%s", text_get(&l.messages));
    r.teacher.graph = teacher_of(&l, &v, rows);
    Graph *g = parsed(&l, arena_printf(&l.arena,
                                       "graph @f(%%x: f32[%s,3], state %%w: f32[3,4] trained) -> (%%y) {\n"
                                       "    %%y: f32[%s,4] = matmul(%%x, %%w)\n}\n",
                                       rows, rows));
    for (size_t i = 0; i < COUNT(passes); i++) {
        const PassOptions o = { .recipe = &r };
        status = pass_run(pass_find(passes[i]), g, &(PassRun){ .options = &o, .allowed = -1 });
        require(status == OK, "%s: %s", options, text_get(&l.messages));
    }
    const Tensor **in = NEWS(&l.arena, const Tensor *, g->n_inputs);
    Tensor **out = NEWS(&l.arena, Tensor *, (size_t)graph_n_results(g));
    for (size_t i = 0; i < g->n_inputs; i++)
        in[i] = given(&l, g->inputs[i], &v);
    status = evaluate(g, NULL, &heap, in, out);
    require(status == OK, "%s", text_get(&l.messages));
    const Results results = results_of(g, &l.arena);
    const int at = results_find(&results, "loss"), slope = results_find(&results, "grad.w");
    assert_true(at >= 0 && slope >= 0);
    const double got = tensor_get_f64(out[at], 0);
    require(fabs(got - wanted) < 2e-6 * fabs(wanted) + 1e-7, "%s: loss %.9g, wanted %.9g", options, got, wanted);
    for (int i = 0; i < INPUTS * CLASSES; i++) {
        const double a = tensor_get_f64(out[slope], i), b = gradient[i / CLASSES][i % CLASSES];
        require(fabs(a - b) < 2e-6, "%s: gradient %d is %.9g, wanted %.9g", options, i, a, b);
    }
    heap_close(&heap);
    language_close(&l);
}

static void loss_and_gradients_are_those_of_the_formula(void **state)
{
    (void)state;
    compare("6", "cross_entropy:y", "", 4, 0.5, false);
    compare("6", "cross_entropy:y", ":temperature=1,weight=0.25", 1, 0.25, false);
    compare("6", "cross_entropy:y", ":temperature=2,weight=1", 2, 1, false);
    compare("6", "cross_entropy:y", ":temperature=3.7,weight=0.9,output=y", 3.7, 0.9, false);
    compare("2,3", "cross_entropy:y,axis=2", ":temperature=2", 2, 0.5, false);
    compare("6", "cross_entropy:y,sample_weight=s", ":temperature=2", 2, 0.5, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(loss_and_gradients_are_those_of_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
