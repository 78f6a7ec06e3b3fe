/* Transposes put every element in its place: of each size, of axes that fill no squares, at every level, on some threads. */
#include "ops/card/make.h"
#include "support/calls.h"

enum { THREADS = 2 };

typedef struct Case {
    int rank;
    int64_t dims[3];
    int order[3];
} Case;

static const Case cases[] = {
    { 2, { 8, 8 }, { 1, 0 } },         { 2, { 300, 34 }, { 1, 0 } },       { 2, { 33, 70 }, { 1, 0 } },
    { 2, { 1030, 66 }, { 1, 0 } },     { 3, { 3, 37, 130 }, { 0, 2, 1 } }, { 3, { 5, 48, 700 }, { 0, 2, 1 } },
    { 3, { 20, 6, 40 }, { 2, 1, 0 } }, { 3, { 12, 9, 31 }, { 1, 2, 0 } },  { 3, { 2, 7, 12 }, { 2, 0, 1 } },
};

/* An element's bytes say where it was. */
static Tensor *numbered(Arena *arena, const Type *t)
{
    Tensor *x = tensor_new(arena, t);
    for (size_t i = 0; i < x->bytes; i++)
        ((uint8_t *)x->data)[i] = (uint8_t)(i * 2654435761u >> 13);
    return x;
}

static void check(const Case *k, const Tensor *x, const Tensor *y)
{
    const size_t size = (size_t)dtype_bits(x->type->dtype) / 8;
    int64_t at[3] = { 0 }, n = tensor_elements(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, from = 0;
        for (int d = k->rank - 1; d >= 0; d--) {
            at[k->order[d]] = rest % k->dims[k->order[d]];
            rest /= k->dims[k->order[d]];
        }
        for (int d = 0; d < k->rank; d++)
            from = from * k->dims[d] + at[d];
        assert_memory_equal((const char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)from * size,
                            size);
    }
}

static Status every_element_is_in_its_place(void *arg)
{
    static const DType types[] = { U8, BF16, I16, F32, I32, F64 };
    Context *c = arg;
    Parallel *pool = parallel_open(THREADS, NULL);
    for (size_t i = 0; i < COUNT(cases) * COUNT(types); i++)
        for (size_t l = 0; kernels_levels[l]; l++) {
            const Case *k = &cases[i / COUNT(types)];
            const Kernels *level = kernels_named(kernels_levels[l]);
            int64_t order[3];
            if (!level)
                continue;
            for (int d = 0; d < k->rank; d++)
                order[d] = k->order[d];
            Build b = fresh(c);
            const Type *t = type_tensor(&b.graph->ir->types, types[i % COUNT(types)], k->rank, k->dims);
            Tensor *x = numbered(b.graph->arena, t);
            Node *y = make_transpose(&b, build_const(&b, x), k->rank, order);
            check(k, x, value_of(c, y, &(EvalOptions){ .kernels = level, .pool = i % 2 ? pool : NULL }));
        }
    parallel_close(pool);
    return OK;
}

static void transposes(void **state)
{
    (void)state;
    with_context(every_element_is_in_its_place);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(transposes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
