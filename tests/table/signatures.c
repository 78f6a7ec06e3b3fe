/* Signatures against ONNX's own schema, and against calls that are wrong in one place. */
#include "ops/card/schema.h"
#include "ops/card/signature.h"
#include "support/samples.h"

static int n_parts(const char *const *parts, int most)
{
    int n = 0;
    while (n < most && parts[n])
        n++;
    return n;
}

static const OnnxSchema *schema_of(const OpDef *d)
{
    return d->onnx.op ? schema_find(d->onnx.domain ? d->onnx.domain : "", d->onnx.op, ONNX_OPSET_NEWEST) : NULL;
}

static int complain(const OpDef *d, const char *what, int operand)
{
    print_error("%s: operand %d: %s\n", d->name, operand, what);
    return 1;
}

/* Whether an extent is a number, or stands in a second place. */
static bool is_shared(const Signature *s, char c)
{
    int n = c >= '0' && c <= '9' ? 2 : 0;
    for (int i = 0; i < SIGNATURE_INS + SIGNATURE_OUTS; i++) {
        const char *part = i < SIGNATURE_INS ? s->in[i] : s->out[i - SIGNATURE_INS];
        for (part = part ? strchr(part, '[') : NULL; part && *part; part++)
            n += *part == c;
    }
    return n > 1;
}

static bool ends_optional(const char *part)
{
    return part[strlen(part) - 1] == '?';
}

/* A call of operand i's signature alone whose type is t; whether it is taken. */
static bool takes(Context *c, const OpDef *def, const char *part, const Type *t)
{
    const Signature alone = { .in = { part } };
    const OpDef one = { .name = def->name, .signature = &alone };
    Bound k = signature_open();
    Infer q = {
        .ir = &c->ir, .types = &c->ir.types, .def = &one, .n_in = 1, .in = &t, .n_out = 1, .scratch = &c->arena
    };
    return signature_match(&q, &k);
}

/* Every type that ONNX admits is taken, and what may be absent there may be absent here. */
static int check_schema(Context *c, const OpDef *d, const OnnxSchema *s)
{
    int bad = 0;
    const int n = n_parts(d->signature->in, SIGNATURE_INS);
    for (int i = 0; i < n; i++) {
        const OnnxParam *p = schema_input(s, i);
        const uint32_t mask = p ? s->types[p->types].tensor : 0;
        if (!p || ((p->flags & ONNX_PARAM_OPTIONAL) != 0) != ends_optional(d->signature->in[i]))
            bad += complain(d, "may be absent here or there alone", i);
        for (int t = 0; t < DTYPE_COUNT; t++)
            if (mask >> dtype_onnx((DType)t) & 1 &&
                !takes(c, d, d->signature->in[i], type_unranked(&c->ir.types, (DType)t)))
                bad += complain(d, dtype_name((DType)t), i);
    }
    return bad;
}

/* Operand i of a call with one more dimension, with one extent changed, or of another type: dimensions that a text spells
 * out are looked at, those of a star too where another operand has them. */
static bool refuses_changed(Context *c, const Node *call, int i, int dim)
{
    const OpDef *d = op_of(call);
    const Type **types = NEWS(&c->arena, const Type *, call->n_in + 1), *t = in(call, i)->type;
    int64_t dims[MAX_RANK];
    for (int k = 0; k < call->n_in; k++)
        types[k] = in(call, k) ? in(call, k)->type : NULL;
    if (t->rank)
        memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
    if (dim >= 0)
        dims[dim] += 11;
    types[i] =
        dim == -1 ? type_with_dtype(&c->ir.types, t, STRING) : type_tensor(&c->ir.types, t->dtype, t->rank, dims);
    Infer q = { .ir = &c->ir,
                .types = &c->ir.types,
                .def = d,
                .attr = call->attr,
                .n_in = call->n_in,
                .in = types,
                .nodes = call->in ? NEWS(&c->arena, Node *, call->n_in + 1) : NULL,
                .n_out = type_results(call->type),
                .scratch = &c->arena };
    const Type *y = d->infer(&q);
    return !y || (dim >= 0 && y != call->type); /* an extent that nobody else has is that of the result */
}

static int check_changes(Context *c, const Node *call, int *changed)
{
    const Signature *s = op_of(call)->signature;
    int bad = 0;
    for (int i = 0; i < call->n_in && s->in[i]; i++) {
        if (!in(call, i))
            continue;
        if (s->in[i][0] != 'T' && s->in[i][0] != 'U' && !refuses_changed(c, call, i, -1))
            bad += complain(op_of(call), "may be strings", i);
        for (int k = 0; strchr(s->in[i], '[') && !strchr(s->in[i], '*') && k < in(call, i)->type->rank; k++, ++*changed)
            if (is_shared(s, strchr(s->in[i], '[')[1 + k]) && !refuses_changed(c, call, i, k))
                bad += complain(op_of(call), "has an extent that is not looked at", i);
    }
    return bad;
}

typedef struct Totals {
    int bad, cards, changed;
} Totals;

typedef struct Visit {
    Context c;
    const OpDef *def;
    Totals *totals;
} Visit;

static Status visit(void *arg)
{
    Visit *v = arg;
    Totals *t = v->totals;
    const OnnxSchema *schema = schema_of(v->def);
    t->cards++;
    t->bad += schema ? check_schema(&v->c, v->def, schema) : 0;
    for (int variant = 0; variant < v->def->n_variants; variant++) {
        Node *y = sample_of(&v->c, v->def, variant);
        t->bad += y ? check_changes(&v->c, sample_call(y), &t->changed) : 1;
    }
    return OK;
}

static void signatures_hold(void **state)
{
    (void)state;
    Totals t = { 0 };
    for (size_t i = 0; i < ops_table.n; i++) {
        Visit v = { .def = ops_table.defs[i], .totals = &t };
        if (!v.def->signature)
            continue;
        context_open(&v.c);
        assert_int_equal(guarded(&v.c.memory, visit, &v), OK);
        context_close(&v.c);
    }
    print_message("%d cards, %d dimensions changed\n", t.cards, t.changed);
    assert_int_equal(t.bad, 0);
    assert_true(t.cards > 8 && t.changed > 100);
}

/* What is said of a call that does not fit: the operand, what it is, what it should be, with what others say. */
static Status messages(void *arg)
{
    Context *c = arg;
    static const struct {
        const char *in[2], *says;
        int rank[2];
        int64_t dims[2][3];
        DType dtype[2];
    } wrong[] = {
        { { "F[*nn]" }, "operand 0 is f32[2,3], wanted is f32[..,n=2,n=2]", { 2 }, { { 2, 3 } }, { F32 } },
        { { "F[nc]", "G[c]" }, "operand 1 is f64[4], wanted is f64[c=3]", { 2, 1 }, { { 2, 3 }, { 4 } }, { F32, F64 } },
        { { "F[nc]", "G[c]" },
          "operand 1 is i64[3], wanted is float[c=3]",
          { 2, 1 },
          { { 2, 3 }, { 3 } },
          { F32, I64 } },
        { { "F[*]", "F[*]" }, "operand 1 is f64[3], wanted is f32[3]", { 1, 1 }, { { 3 }, { 3 } }, { F32, F64 } },
        { { "F[*]", "i64[*]" }, "operand 1 is i64[4], wanted is i64[3]", { 1, 1 }, { { 3 }, { 4 } }, { F32, I64 } },
        { { "i64[k3]" }, "operand 0 is i64[5,4], wanted is i64[k=5,3]", { 2 }, { { 5, 4 } }, { I64 } },
        { { "bool[]" }, "operand 0 is bool[1], wanted is bool[]", { 1 }, { { 1 } }, { BOOL } },
        { { "J?" }, "operand 0 is f32[1], wanted is integer", { 1 }, { { 1 } }, { F32 } },
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const Signature s = { .in = { wrong[i].in[0], wrong[i].in[1] } };
        const OpDef def = { .name = "word", .signature = &s };
        const Type *types[2] = { NULL };
        for (int k = 0; k < 2 && wrong[i].in[k]; k++)
            types[k] = type_tensor(&c->ir.types, wrong[i].dtype[k], wrong[i].rank[k], wrong[i].dims[k]);
        Bound k = signature_open();
        Infer q = { .ir = &c->ir, .types = &c->ir.types, .def = &def, .n_in = 2, .in = types, .scratch = &c->arena };
        assert_false(signature_match(&q, &k));
        assert_string_equal(q.complaint, wrong[i].says);
    }
    return OK;
}

static void complaints_name_operand_and_extents(void **state)
{
    (void)state;
    with_context(messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(signatures_hold),
                                        cmocka_unit_test(complaints_name_operand_and_extents) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
