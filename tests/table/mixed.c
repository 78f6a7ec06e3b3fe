/* Every op that is of a narrow type itself (classes T, P, PW, PM) takes f32 where its card says that an operand stays
 * wide, gives f32 where the card says so of a result, and rounds once: its results are those of the same call on the
 * same values in f32, rounded.  Calls that round operands of products inside only come near. */
#include "support/cards_hold.h"

typedef struct Tally {
    int calls, mixed, wide_results, bad;
} Tally;

/* Products of what the call itself has computed: it rounds that first. */
static bool rounds_inside(Op op)
{
    switch (op) {
    case OP_attention:
    case OP_attention_grad:
    case OP_einsum:
    case OP_lstm:
    case OP_gru:
    case OP_rnn:
        return true;
    default:
        return false;
    }
}

static bool is_f32(const Type *t)
{
    return t->kind == TYPE_TENSOR && t->dtype == F32;
}

static AmpClass class_of(const Sample *k, DType narrow)
{
    const AmpCard *card = &k->def->amp;
    const AmpClass c = narrow == F16 ? card->f16 : card->bf16;
    return c == AMP_C ? card->when(k->call, narrow) : c;
}

static bool has_bit(uint32_t bits, int i)
{
    return bits >> (i < 31 ? i : 31) & 1;
}

/* Says of a call's copy which results are wide. */
static const void *attr_with(const Sample *k, const char *name, int to)
{
    const AttrSpec *s = attr_find(k->def->attrs, str(name));
    if (!s || !s->ours || s->kind != ATTR_DTYPE)
        return k->call->attr;
    void *attr = attrs_copy(&k->c->arena, k->def->attrs, k->call->attr);
    *(int *)attr_at(s, attr) = to;
    return attr;
}

/* The call on operands rounded to a type: as they are then (wide_too: all f32 again). */
static Node *call_on(Build *b, const Sample *k, DType narrow, bool wide_too, Tally *t)
{
    Node *ins[32];
    if (k->call->n_in > (int)COUNT(ins))
        return NULL;
    for (int i = 0; i < k->call->n_in; i++) {
        ins[i] = in(k->call, i);
        if (!ins[i] || !is_f32(ins[i]->type))
            continue;
        if (!has_bit(k->def->amp.wide, i))
            ins[i] = build_amp_cast(b, ins[i], narrow);
        else if (!wide_too)
            t->mixed++;
        if (wide_too)
            ins[i] = build_amp_cast(b, ins[i], F32);
    }
    const void *attr = wide_too ? k->call->attr : attr_with(k, "state_type", F32 + 1);
    return build_node_n(b, k->call->op, attr, k->call->n_in, ins, type_results(k->call->type));
}

static int differs(const Sample *k, DType narrow, int i, const Tensor *got, const Tensor *want)
{
    const bool near = rounds_inside(k->call->op);
    double most = 0;
    for (int64_t e = 0; e < tensor_elements(want); e++)
        if (isfinite(tensor_get_f64(want, e)))
            most = fmax(most, fabs(tensor_get_f64(want, e)));
    for (int64_t e = 0; e < tensor_elements(want); e++) {
        const double x = tensor_get_f64(got, e), y = tensor_get_f64(want, e);
        if (x == y || (isnan(x) && isnan(y)) || (near && fabs(x - y) <= 0.05 * (1 + most)))
            continue;
        return print_error("%s, variant %d in %s, result %d, element %d: %.9g, wanted is %.9g\n", k->def->name,
                           k->variant, dtype_name(narrow), i, (int)e, x, y),
               1;
    }
    return 0;
}

/* Result i has the type that the card says, and the value. */
static int check_result(const Sample *k, DType narrow, int i, const Tensor *got, const Tensor *want, Tally *t)
{
    const bool wide = has_bit(k->def->amp.wide_out, i) && type_results(k->call->type) > 1;
    if (got->type->kind != TYPE_TENSOR || !dtype_is_float(want->type->dtype))
        return 0;
    t->wide_results += wide;
    if (wide && got->type->dtype != F32)
        return sample_complain(k, "does not give wide what its card says");
    return differs(k, narrow, i, got, want);
}

static Tensor *evaluated(const Sample *k, Graph *g, Node *y)
{
    Tensor *out = NULL;
    const EvalOptions options = { .seed = 7 };
    graph_return(g, 1, &y, NULL);
    return evaluate(g, &options, &k->c->heap, NULL, &out) == OK ? out : NULL;
}

/* Each result of the call in f32 is rounded as the narrow call's is. */
static Node *rounded_like(Build *b, Node *wide, const Type *type)
{
    const int n = type_results(type);
    Node **parts = NEWS(b->graph->arena, Node *, n);
    for (int i = 0; i < n; i++) {
        const Type *t = type_result(type, i);
        parts[i] = build_part(b, wide, i);
        if (t->kind == TYPE_TENSOR && is_f32(parts[i]->type) && dtype_is_narrow(t->dtype))
            parts[i] = build_amp_cast(b, parts[i], t->dtype);
    }
    return n == 1 ? parts[0] : build_tuple(b, n, parts);
}

static void check_call(const Sample *k, DType narrow, Tally *t)
{
    const AmpClass c = class_of(k, narrow);
    const int n = type_results(k->call->type);
    Build b = build_at_end(k->graph);
    if (c != AMP_T && c != AMP_P && c != AMP_PW && c != AMP_PM)
        return;
    for (int i = 0; i < k->call->n_in; i++) {
        const Type *x = in(k->call, i) ? in(k->call, i)->type : NULL;
        if (x && (x->kind != TYPE_TENSOR || (dtype_is_float(x->dtype) && x->dtype != F32)))
            return;
    }
    k->c->last = NULL;
    Node *y = call_on(&b, k, narrow, false, t);
    if (!y) {
        t->bad += sample_complain(k, "is not taken with its wide operands");
        return;
    }
    Node *wide = call_on(&b, k, narrow, true, t);
    Tensor *got = evaluated(k, b.graph, y);
    Tensor *want = wide ? evaluated(k, b.graph, rounded_like(&b, wide, y->type)) : NULL;
    if (!got || !want) {
        t->bad += sample_complain(k, "is not evaluated");
        return;
    }
    for (int i = 0; i < n; i++)
        t->bad += check_result(k, narrow, i, n > 1 ? got->items[i] : got, n > 1 ? want->items[i] : want, t);
    t->calls++;
    tensor_drop(&k->c->heap, got);
    tensor_drop(&k->c->heap, want);
}

typedef struct Card {
    Sample sample;
    Tally *tally;
} Card;

static Status check_card(void *arg)
{
    Card *card = arg;
    Sample *k = &card->sample;
    for (k->variant = 0; k->variant < k->def->n_variants; k->variant++)
        for (DType d = F16; d <= BF16 && sample_build(k); d++)
            if (dtype_is_narrow(d))
                check_call(k, d, card->tally);
    return OK;
}

static void narrow_calls_take_what_stays_wide(void **state)
{
    (void)state;
    Tally t = { 0 };
    for (size_t i = 0; i < ops_table.n; i++) {
        Context c;
        const OpDef *d = ops_table.defs[i];
        if (d->structural || !d->sample || d->n_regions)
            continue;
        context_open(&c);
        Card card = { { .c = &c, .def = d }, &t };
        assert_int_equal(guarded(&c.memory, check_card, &card), OK);
        context_close(&c);
    }
    print_message("%d calls, %d wide operands, %d wide results\n", t.calls, t.mixed, t.wide_results);
    assert_true(t.calls > 0 && t.mixed > 0 && t.wide_results > 0);
    assert_int_equal(t.bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(narrow_calls_take_what_stays_wide) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
