/* label: fast */
/* A product that goes on with a sum: pieces of k have the bits of all of it, in any pieces, over the sum or beside it; nothing stops
 * it half way. */
#include <string.h>

#include "ops/contract/contract.h"
#include "ops/machine/caller.h"
#include "support/seed.h"
#include "testing.h"

typedef struct Shape {
    int64_t m, n, k;
    int64_t pieces[6]; /* of k, ended by 0 */
} Shape;

static const Shape shapes[] = {
    { 7, 5, 9, { 4, 1, 4 } },
    { 1, 40, 70, { 32, 38 } },
    { 2, 3, 2048, { 1000, 1048 } },
    { 130, 97, 300, { 1, 2, 64, 233 } },
    { 33, 300, 2048, { 512, 1024, 512 } },
    { 65, 1, 128, { 32, 32, 64 } },
    { 20, 700, 96, { 32, 64 } },
};

static const Type *matrix(Context *c, DType d, int64_t rows, int64_t cols)
{
    return type_tensor(&c->ir.types, d, 2, (int64_t[]){ rows, cols });
}

static Tensor *draw(Context *c, Rng *rng, DType d, int64_t rows, int64_t cols)
{
    Tensor *t = tensor_new(&c->arena, matrix(c, d, rows, cols));
    for (int64_t i = 0; i < rows * cols; i++)
        tensor_set_f64(t, i, (double)rng_range(rng, -1000, 1000) / 512);
    return t;
}

/* Rows of a matrix that is summed over its rows. */
static Tensor *rows_of(Context *c, const Tensor *t, int64_t from, int64_t n)
{
    Tensor *some = tensor_new(&c->arena, matrix(c, t->type->dtype, n, t->type->dims[1]));
    const size_t row = t->bytes / (size_t)t->type->dims[0];
    memcpy(some->data, (const char *)t->data + (size_t)from * row, (size_t)n * row);
    return some;
}

static Tensor *turned(Context *c, const Tensor *t)
{
    Tensor *to = tensor_new(&c->arena, matrix(c, t->type->dtype, t->type->dims[1], t->type->dims[0]));
    for (int64_t i = 0; i < t->type->dims[0]; i++)
        for (int64_t j = 0; j < t->type->dims[1]; j++)
            tensor_set_f64(to, j * t->type->dims[0] + i, tensor_get_f64(t, i * t->type->dims[1] + j));
    return to;
}

static void call(Context *c, const EvalOptions *o, Op op, const void *attr, int n, const Tensor *const *in, Tensor *out)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Node *ins[3];
    for (int i = 0; i < n; i++)
        ins[i] = graph_input(g, NULL, in[i]->type);
    Node *node = build_node(&b, op, attr, n, ins);
    assert_int_equal(b.status, OK);
    Arena room;
    arena_open(&room, &c->memory);
    Caller *caller = caller_open(&c->ir, o, &c->arena, &c->heap, &room);
    assert_int_equal(caller_call(caller, node, 0, in, &out), OK);
    caller_close(caller);
    arena_close(&room);
}

/* One shape in one type: way says which operands are turned, and whether the sum lies where the result does. */
static void check_shape(Context *c, const Shape *s, DType d, int way, const EvalOptions *o)
{
    Rng rng = { seed_of("accumulate", (uint64_t)(s - shapes) * 8 + (uint64_t)way) };
    const DType sum = d == F64 ? F64 : F32;
    const AccumulateAttr at = { .ta = way & 1, .tb = way >> 1 & 1 };
    const MatmulAttr whole = { .ta = true, .out = (int)sum + 1 };
    const bool over = way >> 2 & 1;
    Tensor *x = draw(c, &rng, d, s->k, s->m), *y = draw(c, &rng, d, s->k, s->n);
    Tensor *want = tensor_new(&c->arena, matrix(c, sum, s->m, s->n));
    Tensor *got = tensor_new(&c->arena, want->type), *next = tensor_new(&c->arena, want->type);
    call(c, &(EvalOptions){ .pool = o->pool }, OP_matmul, &whole, 2, (const Tensor *[]){ x, y }, want);
    memset(got->data, 0, got->bytes);
    for (int64_t i = 0, from = 0; s->pieces[i]; from += s->pieces[i++]) {
        Tensor *a = rows_of(c, x, from, s->pieces[i]), *b = rows_of(c, y, from, s->pieces[i]);
        a = at.ta ? a : turned(c, a);
        b = at.tb ? turned(c, b) : b;
        call(c, o, OP_matmul_accumulate, &at, 3, (const Tensor *[]){ a, b, got }, over ? got : next);
        if (!over)
            memcpy(got->data, next->data, got->bytes);
    }
    if (memcmp(want->data, got->data, want->bytes))
        print_error("%d x %d x %d of %s, way %d\n", (int)s->m, (int)s->n, (int)s->k, dtype_name(d), way);
    assert_memory_equal(want->data, got->data, want->bytes);
}

static Status check_pieces(void *context)
{
    static const DType types[] = { F32, F64, BF16, F16 };
    Context *c = context;
    Parallel *pool = parallel_open(3, NULL);
    for (size_t i = 0; i < COUNT(shapes) * COUNT(types) * 8; i++)
        for (int threads = 0; threads < 2; threads++)
            check_shape(c, &shapes[i / 8 / COUNT(types)], types[i / 8 % COUNT(types)], (int)(i % 8),
                        &(EvalOptions){ .pool = threads ? pool : NULL });
    parallel_close(pool);
    return OK;
}

static void pieces(void **state)
{
    (void)state;
    with_context(check_pieces);
}

/* A run that is asked to stop: such a call is done, since half of it could not be done again. */
static Status check_stop(void *context)
{
    static const _Atomic int stop = 1;
    check_shape(context, &shapes[3], F32, 5, &(EvalOptions){ .stop = &stop });
    return OK;
}

static void stops_at_its_end(void **state)
{
    (void)state;
    with_context(check_stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pieces), cmocka_unit_test(stops_at_its_end) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
