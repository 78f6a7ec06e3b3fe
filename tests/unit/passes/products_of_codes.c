/* Products of few bits beside those of floats: every kind of product, each operand's record, whatever is transposed, padded,
 * strided, spread and grouped.  Errors are those of rounding; a scale in another's place would be a hundred times that. */
#include <math.h>
#include <string.h>

#include "passes/pipelines.h"
#include "support/calls.h"
#include "support/language.h"
#include "support/recipe.h"

typedef struct Case {
    const char *x, *w, *y, *call;
} Case;

static const Case cases[] = {
    { "6,20", "20,7", "6,7", "matmul(%x, %w)" },
    { "2,3,20", "20,7", "2,3,7", "matmul(%x, %w)" },
    { "7,20", "6,7", "6,20", "matmul(%w, %x)" },
    { "6,20", "7,20", "6,7", "gemm(%x, %w, transB=true, alpha=0.5)" },
    { "20,6", "20,7", "6,7", "gemm(%x, %w, transA=true)" },
    { "3,5,20", "3,20,7", "3,5,7", "matmul(%x, %w)" },
    { "2,4,7,7", "6,4,3,3", "2,6,7,7", "conv(%x, %w, pads=[1,1,1,1])" },
    { "2,4,7,8", "6,2,3,3", "2,6,4,4", "conv(%x, %w, pads=[1,1,1,1], strides=[2,2], group=2)" },
    { "2,6,9,9", "6,1,3,3", "2,6,7,7", "conv(%x, %w, pads=[1,1,1,1], dilations=[2,2], group=6)" },
    { "2,4,8,7", "5,4,1,1", "2,5,4,4", "conv(%x, %w, strides=[2,2])" },
    { "3,4,20", "5,4,3", "3,5,24", "conv(%x, %w, pads=[4,2])" },
    { "2,3,5,4,4", "4,3,2,2,3", "2,4,2,4,3", "conv(%x, %w, pads=[0,1,1,0,0,0], strides=[2,1,1])" },
    { "2,3,9", "4,3,2", "2,4,3", "conv(%x, %w, strides=[3])" },
};

typedef struct Format {
    const char *quant;
    double far;
    bool integers;
} Format;

static const Format formats[] = {
    { "int8-matmul,first=8,last=8", 0.03, true },
    { "int8-matmul,a=int8:tensor:dynamic:narrow,first=8,last=8", 0.04, true },
    { "w=int6:row:dynamic:narrow,a=int8:row:dynamic:sr:narrow,g=int8:row:dynamic:narrow", 0.06, true },
    { "fp8,last=8", 0.08, false },
    { "mxint8", 0.05, false },
    { "mxfp8", 0.12, false },
};

enum { RESULTS = 4 };

static Graph *graph_of(Language *l, const Case *k, const char *quant)
{
    static const char form[] =
        "graph @f(%%x0: f32[%s], %%r: f32[%s], state %%s: f32[%s] trained, state %%w: f32[%s] trained) "
        "-> (%%loss, %%y) {\n"
        "    %%x: f32[%s] = mul(%%x0, %%s)\n"
        "    %%y: f32[%s] = %s node=\"p\"\n"
        "    %%z: f32[%s] = mul(%%y, %%r)\n"
        "    %%loss: f32[] = reduce_sum(%%z, keepdims=false)\n"
        "}\n";
    static const char *const names[] = { "differentiate", "simplify", "quantize-products" };
    const Pass *passes[COUNT(names)];
    for (size_t i = 0; i < COUNT(names); i++)
        passes[i] = pass_find(names[i]);
    Recipe r = { .n_groups = 0 };
    Module *m =
        language_parse(l, arena_printf(&l->arena, form, k->x, k->y, k->x, k->w, k->x, k->y, k->call, k->y), NULL);
    require(m != NULL, "%s: %s", k->call, text_get(&l->messages));
    const char *options = quant ? arena_printf(&l->arena, "--quant %s", quant) : "";
    require(recipe_from_options(&r, &l->ir, &l->arena, str(options), NULL) == OK, "%s", text_get(&l->messages));
    const Pipeline pipeline = { "products", TYPED | SHAPED | CHOSEN, passes, COUNT(passes) };
    const PipelineOptions how = { .pass.recipe = &r, .verify_each = VERIFY_GRAPH };
    const Status status = pipeline_run(&pipeline, m->graphs[0], &how);
    require(status == OK, "%s %s: %s", k->call, options, text_get(&l->messages));
    return m->graphs[0];
}

static void values_of(Language *l, Graph *g, Heap *heap, Tensor **out)
{
    const Tensor **in = NEWS(&l->arena, const Tensor *, g->n_inputs);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Rng rng = { 11 + i };
        const bool is_signs = strcmp(g->inputs[i]->name, "qcc.hadamard") == 0;
        Tensor *t = tensor_new(&l->arena, g->inputs[i]->type);
        for (int64_t j = 0; j < tensor_elements(t); j++)
            tensor_set_f64(t, j, i == 0 ? 1 : is_signs ? (j % 3 ? 1 : -1) : rng_unit(&rng) * 2 - 1);
        in[i] = t;
    }
    require(evaluate(g, NULL, heap, in, out) == OK, "%s", text_get(&l->messages));
}

static double apart(const Tensor *a, const Tensor *b)
{
    double far = 0, all = 0;
    assert_int_equal(tensor_elements(a), tensor_elements(b));
    for (int64_t i = 0; i < tensor_elements(a); i++) {
        far += (at(a, i) - at(b, i)) * (at(a, i) - at(b, i));
        all += at(b, i) * at(b, i);
    }
    return sqrt(far / all);
}

static int sums_in(const Graph *g)
{
    int n = 0;
    for (const Node *i = g->first; i; i = i->next)
        n += i->op == OP_matmul_integer || i->op == OP_conv_integer || i->op == OP_conv_integer_weight_grad;
    return n;
}

static double compare(const Case *k, const Format *f)
{
    double most = 0;
    Language l;
    Heap heap;
    Tensor *want[RESULTS] = { NULL }, *got[RESULTS] = { NULL };
    language_open(&l);
    heap_open(&heap, l.ir.memory);
    Graph *floats = graph_of(&l, k, NULL), *codes = graph_of(&l, k, f->quant);
    assert_int_equal(graph_n_results(floats), RESULTS);
    values_of(&l, floats, &heap, want);
    values_of(&l, codes, &heap, got);
    require(sums_in(codes) == (f->integers ? 3 : 0), "%s %s: %d sums of codes\n", k->call, f->quant, sums_in(codes));
    for (int i = 1; i < RESULTS; i++) {
        const double far = apart(got[i], want[i]);
        require(far > 0 && far < f->far, "%s %s: result %d is %g apart\n", k->call, f->quant, i, far);
        most = fmax(most, far);
    }
    for (int i = 0; i < RESULTS; i++) {
        tensor_drop(&heap, got[i]);
        tensor_drop(&heap, want[i]);
    }
    heap_close(&heap);
    language_close(&l);
    return most;
}

/* What is turned meets what is turned: otherwise nothing of the product would be left. */
static void turned_products_are_near(void **state)
{
    static const Case even = { "32,48", "48,16", "32,16", "matmul(%x, %w)" };
    static const Format turned[] = {
        { "w=e2m1:tile=16x16:e4m3:4or6:dynamic,a=e2m1:block=16:e4m3:dynamic,"
          "g=e2m1:block=16:e4m3:dynamic:sr:hadamard=16",
          0.35, false },
        { "nvfp4,first=4,last=4,g=e2m1:block=16:e4m3:ms-eden:hadamard=16", 0.25, false },
        { "nvfp4,first=4,last=4,g=e2m1:block=16:ms-eden:hadamard=16,x.wgrad=e2m1:block=16:e4m3:ms-eden:hadamard=16,"
          "w.dgrad=e2m1:block=16:e4m3:ms-eden:hadamard=16",
          0.25, false },
        { "w=int8:block=16:dynamic,a=int8:block=16:dynamic,g=int8:block=16:ms-eden:hadamard=16", 0.02, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(turned); i++)
        printf("%s: %.4f apart at most\n", turned[i].quant, compare(&even, &turned[i]));
}

static void products_are_near(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(formats); f++) {
        double most = 0;
        for (size_t k = 0; k < COUNT(cases); k++)
            most = fmax(most, compare(&cases[k], &formats[f]));
        printf("%s: %.4f apart at most\n", formats[f].quant, most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_are_near),
                                        cmocka_unit_test(turned_products_are_near) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
