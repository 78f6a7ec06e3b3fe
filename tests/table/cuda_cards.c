/* label: fast */
/* Which calls have kernels for CUDA: the samples of every card, lowered and made a program, launch by launch.  What runs on the host is in
 * the list, with the reason; the list is exact, in both directions. */
#include "api/hall/lower.h"
#include "codegen/cuda/cuda_module.h"
#include "support/samples.h"

/* A word some or all of whose launches have none. */
typedef struct Without {
    const char *word, *reason;
    bool some; /* others have */
} Without;

static const Without without[] = {
    { "attention_grad", "no queries, and keys that get zeros", true },
    { "bernoulli", "draws whose chance each element has", true },
    { "blackman_window", "steps have its result as a constant", true },
    { "cast", "to and from elements that share bytes: of files", true },
    { "col2im", "of files; no step makes it", true },
    { "compress", "how many elements it gives is known when it has run", true },
    { "constant_of_shape", "steps have its result as a constant", true },
    { "conv_transpose", "data between whose elements nothing reaches the result", true },
    { "deform_columns", "of files; rarely trained", false },
    { "deform_columns_grad", "of files; rarely trained", false },
    { "deform_columns_offset_grad", "of files; rarely trained", false },
    { "deform_conv", "of files; rarely trained", false },
    { "dequantize_linear", "codes of less than eight bits that are floats", true },
    { "det", "of files; rarely trained", false },
    { "det_grad", "of files; rarely trained", true },
    { "dft", "spectra; rarely trained", true },
    { "dropout", "NumPy draws, or a ratio that is not known", true },
    { "dynamic_quantize_linear", "of deployed files", false },
    { "einsum", "of one operand, of three, and with sums of one alone: opened once products are", true },
    { "eye_like", "steps have its result as a constant", true },
    { "flex_attention", "has bodies", true },
    { "gather", "nothing is gathered, by indices that may be wrong", true },
    { "gather_elements", "nothing is gathered, by indices that may be wrong", true },
    { "gather_nd", "nothing is gathered, by indices that may be wrong", true },
    { "grid_sample_grad", "no places, and data that get zeros", true },
    { "grid_sample_grid_grad", "grids of narrow floats beside data of f64", true },
    { "gru", "no steps", true },
    { "gru_grad", "no steps", true },
    { "gru_kept", "no steps", true },
    { "hamming_window", "steps have its result as a constant", true },
    { "hann_window", "steps have its result as a constant", false },
    { "loop", "it may end, or hands values round", false },
    { "lower_inverse", "of linear attention, whose chunks are a scan", true },
    { "lp_pool", "powers, of files; rarely trained", true },
    { "lstm", "no steps", true },
    { "lstm_grad", "no steps", true },
    { "lstm_kept", "no steps", true },
    { "max_roi_pool", "of detectors; rarely trained", false },
    { "max_roi_pool_grad", "of detectors; rarely trained", false },
    { "max_unpool", "of files; rarely trained", false },
    { "mel_weight_matrix", "steps have its result as a constant", true },
    { "merge_ranges", "before the first step", false },
    { "multinomial", "draws of classes by their chances", true },
    { "observe", "before the first step", false },
    { "optional_get_element", "what is no tensor", false },
    { "optional_has_element", "what is no tensor", false },
    { "qadd", "factors of 31 bits are made of parts of floats", true },
    { "qconv", "factors of 31 bits are made of parts of floats", true },
    { "qglobal_average_pool", "factors of 31 bits are made of parts of floats", true },
    { "qlinear_matmul", "f8 are numbers, not codes", true },
    { "qmatmul", "f8 are numbers, and factors of 31 bits are made of parts of floats", true },
    { "qmul", "factors of 31 bits are made of parts of floats", true },
    { "quantize_both", "columns without elements, whose scale is the least", true },
    { "quantize_linear", "codes of less than eight bits that are floats, and scales that are integers", true },
    { "random_normal", "draws in f64", true },
    { "random_normal_like", "draws in f64", true },
    { "random_uniform", "draws in f64", true },
    { "random_uniform_like", "draws in f64", true },
    { "range", "steps have its result as a constant", true },
    { "range_scale", "zero points of types that kernels do not know", true },
    { "reduce_min", "the largest number of a type, of no integers", true },
    { "reduce_prod", "of no integers", true },
    { "reduce_sum", "of no integers", true },
    { "reduce_sum_square", "of no integers", true },
    { "resize", "integers between which is interpolated", true },
    { "resize_grad", "numbers that have no axis", true },
    { "reverse_sequence", "of files; rarely trained", false },
    { "rnn", "no steps", true },
    { "rnn_grad", "no steps", true },
    { "roi_align", "of detectors; rarely trained", false },
    { "roi_align_grad", "of detectors; rarely trained", false },
    { "scan", "has a body", true },
    { "scatter_elements", "nothing is there", true },
    { "search_range", "before the first step", false },
    { "shape", "steps have its result as a constant", true },
    { "size", "steps have its result as a constant", false },
    { "stft", "spectra; rarely trained", true },
    { "tensor_scatter", "caches of generation, which no step has", false },
    { "tfidf_vectorizer", "of texts", true },
};

static int64_t launches, alone;
static int with_kernels[COUNT(without)], on_host[COUNT(without)];

static void count(const CudaPart *part)
{
    const char *word = launch_word(part->launch);
    launches++;
    for (size_t i = 0; i < COUNT(without); i++)
        if (strcmp(without[i].word, word) == 0) {
            (part->why ? on_host : with_kernels)[i]++;
            return;
        }
    alone += part->why != NULL;
    if (part->why)
        print_error("%s has no kernel (%s), and is not in the list\n", word, part->why);
}

static Status visit(void *tour)
{
    CardTour *t = tour;
    for (int v = 0; v < t->def->n_variants; v++) {
        Graph *g = sample_graph(t->c, t->def, v);
        const Lowered l = g ? lower_graph(g, &t->c->arena) : (Lowered){ .program = NULL };
        if (!l.program)
            continue;
        CudaModule m;
        cuda_module_open(&m, g->ir->ops, &t->c->arena);
        cuda_module_add(&m, l.program, "sample");
        for (size_t i = 0; i < m.n; i++)
            count(&m.parts[i]);
    }
    return OK;
}

static void cards(void **state)
{
    CardTour t = { .n = 0 };
    int wrong = 0;
    (void)state;
    assert_int_equal(each_card(&t, visit), 0);
    for (size_t i = 0; i < COUNT(without); i++) {
        const Without *w = &without[i];
        const bool right = on_host[i] && w->some == (with_kernels[i] > 0);
        wrong += !right;
        if (!right)
            print_error("%s: %d launches have kernels and %d have none; the list says %s (%s)\n", w->word,
                        with_kernels[i], on_host[i], w->some ? "some" : "none", w->reason);
    }
    print_message("%d launches\n", (int)launches);
    assert_true(launches > 8000);
    assert_int_equal(alone, 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cards) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
