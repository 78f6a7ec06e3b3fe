/* label: slow */
/* Every grain, source of the scale and format of data, in products of every kind: it runs, and where its scales are of what is
 * at hand each element has the number that a plain loop over those who share its scale gives it; or it is refused with a
 * reason and with what to write instead. */
#include "support/grains.h"

/* Along which dimension data have rows: the last, or the channels of what filters read. */
static int axis_of_data(const Product *p, const Type *t)
{
    return p->rows ? t->rank - 1 : 1;
}

/* Who shares a scale of rows of data, or of parts of them that are so long. */
static void keys_of_rows(Loop *l, const Type *t, int axis, int64_t size)
{
    int64_t inner = 1;
    for (int d = axis + 1; d < t->rank; d++)
        inner *= t->dims[d];
    const int64_t parts = (t->dims[axis] + size - 1) / size;
    for (int64_t i = 0; i < type_elements(t); i++)
        l->key[i] = (int)((i / inner / t->dims[axis] * parts + i / inner % t->dims[axis] / size) * inner + i % inner);
    l->n = (int)(type_elements(t) / t->dims[axis] * parts);
}

/* Rows of data, and blocks of them, have scales of their own, whatever the weight has. */
static void check_rows(Case *k, int64_t size, double least, double largest)
{
    static Loop l;
    const Tensor *inputs[8], *x = NULL;
    Tensor *out[1];
    run(k, 1, &k->number, out, inputs);
    for (size_t i = 0; i < k->g->n_inputs; i++)
        if (strcmp(k->g->inputs[i]->name, "x") == 0)
            x = inputs[i];
    const Quantizer *q = &k->read.of[OPERAND_A];
    const bool sym = q->part[QUANT_ZERO].value == ZERO_SYM;
    const int axis = axis_of_data(k->p, x->type);
    keys_of_rows(&l, x->type, axis, size ? size : x->type->dims[axis]);
    reduce(&l, x);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        const float lo = (float)l.lo[l.key[i]], hi = (float)l.hi[l.key[i]];
        const float s = sym ? fmaxf(-lo, hi) / (float)largest : (hi - lo) / (float)(largest - least);
        const float z = sym ? 0 : (float)fmin(fmax((double)rintf((float)least - lo / s), least), largest);
        require(at(out[0], i) == quantized(q, (float)at(x, i), s, z, least, largest), "%s: element %d is %g\n", k->spec,
                (int)i, at(out[0], i));
    }
    tensor_drop(&k->c->heap, out[0]);
}

/* Whether a grain is one of data of a product: one scale, one a row, or blocks within rows. */
static bool is_of_data(const Product *p, const Grain *g)
{
    if (strcmp(g->word, "row") == 0)
        return p->rows;
    return strcmp(g->word, "tensor") == 0 || (g->sums && g->channels == 1 && g->divides);
}

static Status data_body(void *arg)
{
    Context *c = arg;
    int runs = 0, refused = 0, rows = 0;
    for (size_t p = 0; p < COUNT(products); p++)
        for (size_t g = 0; g < COUNT(grains); g++)
            for (size_t s = 0; s < COUNT(sources); s++)
                for (size_t f = 0; f < COUNT(formats) * COUNT(zeros) && sources[s].word; f++) {
                    double least, largest;
                    const char *format = formats[f / COUNT(zeros)];
                    if (products[p].alone)
                        continue;
                    Case k = { .c = c, .p = &products[p], .grain = &grains[g], .runs = &runs, .refused = &refused };
                    k.spec = arena_printf(&c->arena, "a=%s:%s:%s:%s,w=int4:block=8", format, grains[g].word,
                                          word_of(c, sources[s].word, sources[s].value), zeros[f % COUNT(zeros)]);
                    const bool integer = strncmp(format, "int", 3) == 0 || strncmp(format, "uint", 4) == 0;
                    const bool part = strcmp(grains[g].word, "tensor") != 0;
                    if (place(&k, "x") != OK) {
                        require(!(integer && strcmp(format, "int1") != 0 && part && is_of_data(k.p, k.grain) &&
                                  sources[s].value == SOURCE_DYNAMIC),
                                "%s is refused: %s\n", k.spec, k.c->last);
                        continue;
                    }
                    runs++;
                    require(is_of_data(k.p, k.grain), "%s runs\n%s", k.spec, k.p->text);
                    ends_of(k.read.of[OPERAND_A], &least, &largest);
                    if (part && ++rows)
                        check_rows(&k, k.grain->sums, least, largest);
                }
    print_message("data: %d run, %d of them by rows and blocks, %d refused\n", runs, rows, refused);
    assert_true(runs > 800 && rows > 400 && refused > 3000);
    return OK;
}

static void data_run_or_are_refused(void **state)
{
    (void)state;
    with_context(data_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(data_run_or_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
