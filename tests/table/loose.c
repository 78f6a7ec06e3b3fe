/* What infer says about operands of which less is known - values hidden, dimensions ?, ranks unknown - must leave room
 * for what it says when everything is known: a graph with unknown dimensions may not be refused or mistyped. */
#include "support/samples.h"
#include "testing.h"

typedef enum Loose { HIDE_VALUES, HIDE_SOME_DIMS, HIDE_DIMS, HIDE_RANKS, LOOSE_WAYS } Loose;

static const char *const ways[] = { "values hidden", "some dimensions hidden", "all dimensions hidden",
                                    "ranks hidden" };

static const Type *loosen(Types *types, const Type *t, Loose way, Rng *rng)
{
    int64_t dims[MAX_RANK];
    if (way == HIDE_VALUES)
        return t;
    if (t->kind == TYPE_SEQ)
        return type_seq(types, loosen(types, t->parts[0], way, rng));
    if (t->kind == TYPE_OPTIONAL)
        return type_optional(types, loosen(types, t->parts[0], way, rng));
    if (t->kind != TYPE_TENSOR)
        return t;
    if (way == HIDE_RANKS)
        return type_unranked(types, t->dtype);
    for (int i = 0; i < t->rank; i++)
        dims[i] = way == HIDE_DIMS || rng_below(rng, 2) ? DIM_UNKNOWN : t->dims[i];
    return type_tensor(types, t->dtype, t->rank, dims);
}

/* The call's type from loosened operands; null and *why when it is refused. */
static const Type *loose_type(Context *c, const Node *call, Loose way, Rng *rng, const char **why)
{
    const Type **types = NEWS(&c->arena, const Type *, call->n_in + 1);
    const Tensor **values = NEWS(&c->arena, const Tensor *, call->n_in + 1);
    for (int i = 0; i < call->n_in; i++) {
        if (!in(call, i))
            continue;
        const bool shown = way == HIDE_SOME_DIMS && rng_below(rng, 2);
        types[i] = shown ? in(call, i)->type : loosen(&c->ir.types, in(call, i)->type, way, rng);
        values[i] = shown ? node_constant(in(call, i), 0) : NULL;
    }
    Infer q = { .ir = &c->ir,
                .types = &c->ir.types,
                .def = op_of(call),
                .attr = call->attr,
                .n_in = call->n_in,
                .in = types,
                .value = values,
                .n_out = type_results(call->type),
                .regions = call->regions,
                .n_regions = call->n_regions,
                .scratch = &c->arena };
    const Type *type = op_of(call)->infer(&q);
    *why = q.complaint;
    return type;
}

static int disagree(Context *c, const OpDef *d, int variant, const Node *call)
{
    int bad = 0;
    for (Loose way = HIDE_VALUES; way < LOOSE_WAYS; way++) {
        Rng rng = { seed_of(d->name, (uint64_t)variant) };
        const char *why = NULL;
        const Type *type = loose_type(c, call, way, &rng, &why);
        if (type && type_agrees(type, call->type))
            continue;
        print_error("%s, variant %d, %s: %s instead of %s\n", d->name, variant, ways[way],
                    type  ? type_text(&c->arena, type)
                    : why ? why
                          : "refused",
                    type_text(&c->arena, call->type));
        bad++;
    }
    return bad;
}

static Status samples_loosened(void *arg)
{
    Context *c = arg;
    int bad = 0, seen = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        for (int v = 0; d->sample && v < d->n_variants; v++) {
            Node *y = sample_of(c, d, v);
            assert_non_null(y);
            bad += disagree(c, d, v, sample_call(y));
            seen++;
        }
    }
    print_message("%d calls\n", seen);
    assert_true(seen > 1000);
    assert_int_equal(bad, 0);
    return OK;
}

static void infer_is_sound(void **state)
{
    (void)state;
    with_context(samples_loosened);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(infer_is_sound) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
