/* A recurrent layer whose products are seen one by one computes what the layer does: with quantizers so fine that they
 * change nothing, in all its forms; and what is not opened is refused with a reason. */
#include "ir/text/parse.h"
#include "passes/engine/pass.h"
#include "passes/recipe/quantizer.h"
#include "passes/recipe/recipe.h"
#include "support/calls.h"
#include "support/samples.h"

enum { STEPS = 4, BATCH = 3, INPUT = 5, HIDDEN = 2, MOST_IN = 8 };

typedef struct Layer {
    const char *word;
    int gates;
    bool has_cell;
} Layer;

static const Layer layers[] = { { "lstm", 4, true }, { "gru", 3, false }, { "rnn", 1, false } };

typedef struct Form {
    Context *c;
    const Layer *layer;
    const char *direction, *attrs, *steps;
    bool bias, states, last_alone;
    int64_t unrolled_nodes; /* 0: as many as usual */
} Form;

static const char *text_of(const Form *f)
{
    Arena *a = &f->c->arena;
    const int d = strcmp(f->direction, "bidirectional") == 0 ? 2 : 1, wide = f->layer->gates * HIDDEN;
    const bool cell = f->layer->has_cell;
    Text t;
    text_open(&t, a);
    text_printf(&t, "graph @f(%%x: f32[%s,%d,%d], state %%w: f32[%d,%d,%d] trained, state %%r: f32[%d,%d,%d] trained",
                f->steps, BATCH, INPUT, d, wide, INPUT, d, wide, HIDDEN);
    if (f->bias)
        text_printf(&t, ", state %%b: f32[%d,%d] trained", d, 2 * wide);
    if (f->states)
        text_printf(&t, ", %%h: f32[%d,%d,%d]%s", d, BATCH, HIDDEN,
                    cell ? arena_printf(a, ", %%c: f32[%d,%d,%d]", d, BATCH, HIDDEN) : "");
    text_printf(&t, ") -> (%%last%s) {\n    %%y: (f32[%s,%d,%d,%d], f32[%d,%d,%d]%s) = %s(%%x, %%w, %%r%s%s%s",
                f->last_alone ? ""
                : cell        ? ", %all, %cell"
                              : ", %all",
                f->steps, d, BATCH, HIDDEN, d, BATCH, HIDDEN,
                cell ? arena_printf(a, ", f32[%d,%d,%d]", d, BATCH, HIDDEN) : "", f->layer->word,
                f->bias     ? ", %b"
                : f->states ? ", _"
                            : "",
                f->states ? ", _, %h" : "", f->states && cell ? ", %c" : "");
    text_printf(&t, ", direction=%s, hidden_size=%d%s)\n", f->direction, HIDDEN, f->attrs);
    text_printf(&t, "    %%last: f32[%d,%d,%d] = part(%%y, index=1)\n", d, BATCH, HIDDEN);
    if (!f->last_alone)
        text_printf(&t, "    %%all: f32[%s,%d,%d,%d] = part(%%y, index=0)\n", f->steps, d, BATCH, HIDDEN);
    if (!f->last_alone && cell)
        text_printf(&t, "    %%cell: f32[%d,%d,%d] = part(%%y, index=2)\n", d, BATCH, HIDDEN);
    text_add(&t, "}\n");
    return text_get(&t);
}

static Status read_graph(const Form *f, Graph **g)
{
    SourceMap source;
    Module *m;
    TRY(parse_module(&f->c->ir, &f->c->arena, str(text_of(f)), "f.qir", NULL, &source, &m));
    *g = m->graphs[0];
    return OK;
}

static Status open_graph(const Form *f, Graph *g)
{
    QuantSpec all, own;
    const char *name = arena_printf(&f->c->arena, "op:%s",
                                    strcmp(f->layer->word, "lstm") == 0  ? "LSTM"
                                    : strcmp(f->layer->word, "gru") == 0 ? "GRU"
                                                                         : "RNN");
    TRY(quantizer_read(&all, "--quant", "w=off,a=off", "generic", &f->c->arena, &f->c->diag));
    TRY(quantizer_read(&own, "--quant-op", "w=off,a=int16:const=0.00004", "generic", &f->c->arena, &f->c->diag));
    const QuantOverride override = { .selector = name, .spec = &own, .from = "--quant-op" };
    Recipe recipe = { .quantization = { .spec = &all, .target = "generic", .overrides = &override, .n_overrides = 1 } };
    const PassOptions options = { .recipe = &recipe };
    return pass_run(pass_find("place-quant"), g, &(PassRun){ .options = &options, .allowed = -1 });
}

static void fill(Context *c, const Graph *g, const Tensor **inputs)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(&c->arena, g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, 0.9 * sin(1.7 * (double)k + (double)i));
        inputs[i] = t;
    }
}

static int count(const Graph *g, const char *word)
{
    int n = 0;
    for (const Node *k = g->first; k; k = k->next)
        n += strcmp(op_of(k)->name, word) == 0;
    return n;
}

/* Both ways on the same numbers. */
static void check_form(const Form *f)
{
    Graph *layer, *opened;
    const Tensor *inputs[MOST_IN];
    Tensor *want[3], *got[3];
    assert_int_equal(read_graph(f, &layer), OK);
    assert_int_equal(read_graph(f, &opened), OK);
    assert_int_equal(open_graph(f, opened), OK);
    assert_int_equal(count(opened, f->layer->word), 0);
    const int d = strcmp(f->direction, "bidirectional") == 0 ? 2 : 1;
    assert_int_equal(count(opened, "matmul"), d * (STEPS + f->states));
    fill(f->c, layer, inputs);
    assert_int_equal(evaluate(layer, NULL, &f->c->heap, inputs, want), OK);
    assert_int_equal(evaluate(opened, NULL, &f->c->heap, inputs, got), OK);
    for (int i = 0; i < graph_n_results(layer); i++) {
        for (int64_t k = 0; k < tensor_elements(want[i]); k++)
            require(fabs(at(got[i], k) - at(want[i], k)) < 5e-4, "%s: element %d of result %d is %g, not %g\n",
                    text_of(f), (int)k, i, at(got[i], k), at(want[i], k));
        tensor_drop(&f->c->heap, want[i]);
        tensor_drop(&f->c->heap, got[i]);
    }
}

static Status forms_body(void *context)
{
    static const char *const directions[] = { "forward", "reverse", "bidirectional" };
    for (size_t l = 0; l < COUNT(layers); l++)
        for (size_t d = 0; d < COUNT(directions); d++)
            for (int k = 0; k < 8; k++) {
                const Form f = { .c = context,
                                 .layer = &layers[l],
                                 .direction = directions[d],
                                 .attrs = l == 1 ? ", linear_before_reset=true" : "",
                                 .steps = "4",
                                 .bias = k & 1,
                                 .states = k & 2,
                                 .last_alone = k & 4 };
                check_form(&f);
            }
    return OK;
}

static void opened_layers_compute_the_same(void **state)
{
    (void)state;
    with_context(forms_body);
}

static void expect(Context *c, Form f, const char *why)
{
    Graph *g;
    f.c = c;
    f.direction = f.direction ? f.direction : "forward";
    f.attrs = f.attrs ? f.attrs : "";
    f.steps = f.steps ? f.steps : "4";
    assert_int_equal(read_graph(&f, &g), OK);
    if (f.unrolled_nodes)
        c->ir.limits.unrolled_nodes = f.unrolled_nodes;
    c->last = NULL;
    assert_int_equal(open_graph(&f, g), UNSUPPORTED);
    require(c->last && strstr(c->last, why) && strstr(c->last, "=a=off"), "\"%s\" does not say \"%s\"\n", c->last, why);
}

static Status refusals_body(void *context)
{
    expect(context, (Form){ .layer = &layers[1] }, "its reset gate acts before the product");
    expect(context, (Form){ .layer = &layers[0], .attrs = ", clip=0.5" }, "its gates are not the usual ones");
    expect(context, (Form){ .layer = &layers[0], .attrs = ", input_forget=true" }, "its gates are not the usual ones");
    expect(context, (Form){ .layer = &layers[2], .steps = "?" }, "nobody knows yet how many steps it takes");
    expect(context, (Form){ .layer = &layers[2], .unrolled_nodes = 60 }, "it takes too many steps");
    return OK;
}

static void others_are_refused(void **state)
{
    (void)state;
    with_context(refusals_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(opened_layers_compute_the_same),
                                        cmocka_unit_test(others_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
