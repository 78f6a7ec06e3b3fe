/* What cards say of a word's arithmetic and of its shape, held against the evaluator: where all words can be asked, whoever
 * behaves so says so, and nobody else. */
#include "ops/card/row.h"
#include "support/calls.h"
#include "support/samples.h"

static const EvalOptions plain = { .seed = 1 };

static Node *number(Build *b, double v)
{
    return build_scalar(b, F32, v);
}

/* What a word gives for two numbers. */
static double on_two(Context *c, Op op, double x, double y)
{
    Build b = fresh(c);
    Node *const in[] = { number(&b, x), number(&b, y) };
    return at(value_of(c, build_node(&b, op, NULL, 2, in), &plain), 0);
}

static double on_one(Context *c, Op op, double x)
{
    Build b = fresh(c);
    Node *const in[] = { number(&b, x) };
    return at(value_of(c, build_node(&b, op, NULL, 1, in), &plain), 0);
}

static bool is_float_row(const OpDef *def, int n, bool test)
{
    return def->row && def->row->n == n && def->row->kinds & ROW_F && def->row->test == test && def->row->lead == 0;
}

/* ---- combine ---- */

static Combine combined(Context *c, Op op)
{
    static const double pairs[][2] = { { 3, 5 }, { -2, 0.5 }, { 0.25, -4 }, { 8, 2 } };
    bool sum = true, product = true, quotient = true;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const double x = pairs[i][0], y = pairs[i][1], z = on_two(c, op, x, y);
        sum &= z == x + y || z == x - y;
        product &= z == x * y;
        quotient &= z == (double)(float)(x / y);
    }
    return sum ? COMBINE_SUM : product ? COMBINE_PRODUCT : quotient ? COMBINE_QUOTIENT : COMBINE_OTHERWISE;
}

static Status check_combined(void *context)
{
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!is_float_row(def, 2, false))
            continue;
        require(combined(context, (Op)i) == def->combine, "%s combines otherwise than its card says", def->name);
        asked++;
    }
    require(asked > 8, "%d words were asked", asked);
    return OK;
}

/* Along the axes of one operand. */
static Status check_folded(void *context)
{
    static const double terms[] = { 1, -2, 4, 8 };
    Context *c = context;
    int said = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (def->access.kind != ACCESS_FOLD || def->min_in != 1 || (def->max_out && def->max_out != 1))
            continue;
        Build b = fresh(c);
        Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, F32, COUNT(terms)));
        for (size_t k = 0; k < COUNT(terms); k++)
            tensor_set_f64(t, (int64_t)k, terms[k]);
        Node *const in[] = { build_const(&b, t) };
        Node *y = build_node(&b, (Op)i, NULL, 1, in);
        const Tensor *z = y ? value_of(c, y, &plain) : NULL;
        if (!z || tensor_elements(z) != 1)
            continue;
        const Combine combine = at(z, 0) == 11 ? COMBINE_SUM : at(z, 0) == -64 ? COMBINE_PRODUCT : COMBINE_OTHERWISE;
        require(combine == def->combine, "%s gives %g", def->name, at(z, 0));
        said += combine != COMBINE_OTHERWISE;
    }
    require(said == 2, "%d words add up or multiply", said);
    return OK;
}

static void combines_as_it_says(void **state)
{
    (void)state;
    with_context(check_combined);
    with_context(check_folded);
}

/* ---- compares ---- */

static Status check_compares(void *context)
{
    Context *c = context;
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!is_float_row(def, 2, true)) {
            require(!def->compares, "%s compares, its card says", def->name);
            continue;
        }
        const unsigned affirms = (on_two(c, (Op)i, 0, 1) != 0 ? IS_LESS : 0) |
                                 (on_two(c, (Op)i, 1, 1) != 0 ? IS_EQUAL : 0) |
                                 (on_two(c, (Op)i, 1, 0) != 0 ? IS_GREATER : 0);
        require(affirms == def->compares, "%s affirms %u, not %u", def->name, affirms, def->compares);
        asked++;
    }
    require(asked == 5, "%d words were asked", asked);
    return OK;
}

static void compares_as_it_says(void **state)
{
    (void)state;
    with_context(check_compares);
}

/* ---- single operands ---- */

/* Whatever is kept off zero in front of it still is behind it. */
static Status check_keeps_off(void *context)
{
    static const double off[] = { 1e-30, 1e-12, 1e-5, 0.5 };
    Context *c = context;
    int said = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!def->amp.keeps_off)
            continue;
        require(is_float_row(def, 1, false) && on_one(c, (Op)i, 0) == 0, "%s is off zero by itself", def->name);
        for (size_t k = 0; k < COUNT(off); k++)
            require(on_one(c, (Op)i, off[k]) >= (double)(float)off[k], "%s of %g is nearer to zero", def->name, off[k]);
        said++;
    }
    assert_int_equal(said, 1);
    return OK;
}

static bool holds_operand(Context *c, const OpDef *def)
{
    int same = 0;
    for (int variant = 0; variant < def->n_variants; variant++) {
        Node *y = sample_of(c, def, variant);
        const Tensor *x = y && y->n_in == 1 && in(y, 0)->type->kind == TYPE_TENSOR ? constant(in(y, 0)) : NULL;
        if (!x)
            continue;
        if (!tensor_same(x, value_of(c, y, &plain)))
            return false;
        same++;
    }
    return same > 0;
}

/* Only moves can tell: what copies for another reason is not handing on. */
static Status check_passes(void *context)
{
    int said = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!op_passes(def) && !def->latches)
            continue;
        require(holds_operand(context, def), "%s does not give its operand", def->name);
        said++;
    }
    assert_int_equal(said, 2);
    return OK;
}

static void gives_its_operand(void **state)
{
    (void)state;
    with_context(check_keeps_off);
    with_context(check_passes);
}

/* ---- likelihood ---- */

/* The probabilities along the last axis of 3 x 4 add up to 1. */
static void check_classes(Context *c, Op op, const OpDef *def)
{
    Rng rng = { 5 };
    Build b = fresh(c);
    Node *const in[] = { DRAW(&b, &rng, F32, 3, 4) };
    void *attr = attrs_default(&c->arena, def->attrs);
    const AttrSpec *axis = attr_find(def->attrs, str("axis"));
    require(axis != NULL, "%s has no axis", def->name);
    *(int64_t *)attr_at(axis, attr) = 1;
    const Tensor *y = value_of(c, build_node(&b, op, attr, 1, in), &plain);
    for (int64_t row = 0; row < 3; row++) {
        double sum = 0;
        for (int64_t k = 0; k < 4; k++)
            sum += def->likelihood == LIKELIHOOD_LOGS ? exp(at(y, 4 * row + k)) : at(y, 4 * row + k);
        require(close_to(sum, 1, 1e-6), "%s: %g in all", def->name, sum);
    }
}

static Status check_likelihood(void *context)
{
    Context *c = context;
    int said = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        said += def->likelihood != LIKELIHOOD_NONE;
        if (def->likelihood == LIKELIHOOD_CLASSES || def->likelihood == LIKELIHOOD_LOGS)
            check_classes(c, (Op)i, def);
        for (double x = -3; def->likelihood == LIKELIHOOD_YES && x < 3; x += 0.5)
            require(close_to(on_one(c, (Op)i, x) + on_one(c, (Op)i, -x), 1, 1e-6), "%s of %g", def->name, x);
    }
    assert_int_equal(said, 3);
    return OK;
}

static void likelihoods_add_up(void **state)
{
    (void)state;
    with_context(check_likelihood);
}

/* ---- operands with a part of their own ---- */

static bool has_bit(uint32_t mask, int i)
{
    return i < 32 && mask >> i & 1;
}

/* The results behind the first have the types of the statistics, in their order. */
static Status check_statistics(void *context)
{
    Context *c = context;
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        require(!(def->filled & ~def->trainable), "%s is filled where it has no parameter", def->name);
        require(!def->counts || !def->differentiable, "%s counts and has a gradient", def->name);
        require(!def->statistics || def->mode == MODE_TRAINING, "%s never moves its statistics", def->name);
        for (int variant = 0; def->statistics && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant), *call = y ? sample_call(y) : NULL;
            if (!call || type_results(call->type) < 2)
                continue;
            for (int k = 0, result = 1; k < call->n_in && result < type_results(call->type); k++)
                if (has_bit(def->statistics, k)) {
                    require(type_elements(type_result(call->type, result)) == type_elements(in(call, k)->type),
                            "%s, variant %d: result %d is %s, operand %d %s\n", def->name, variant, result,
                            type_text(&c->arena, type_result(call->type, result)), k,
                            type_text(&c->arena, in(call, k)->type));
                    result++;
                    asked++;
                }
        }
    }
    require(asked > 10, "%d operands were asked", asked);
    return OK;
}

/* An element of a shape that is no sign of its own (0, -1) is the result's dimension; a 1 may be broadcast. */
static Status check_shapes(void *context)
{
    Context *c = context;
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        for (int variant = 0; def->access.shape && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant);
            const Tensor *shape = y ? constant(in(y, def->access.shape - 1)) : NULL;
            if (!shape || tensor_elements(shape) != y->type->rank)
                continue;
            require(op_steers(def, def->access.shape - 1), "%s: a shape steers", def->name);
            for (int k = 0; k < y->type->rank; k++)
                if (at(shape, k) > 1) {
                    require(y->type->dims[k] == at(shape, k), "%s, variant %d: dimension %d", def->name, variant, k);
                    asked++;
                }
        }
    }
    require(asked > 20, "%d dimensions were asked", asked);
    return OK;
}

static void operands_play_their_part(void **state)
{
    (void)state;
    with_context(check_statistics);
    with_context(check_shapes);
}

/* ---- told, extent ---- */

static bool is_told(Context *c, Op op, int rank, const int64_t *dims)
{
    Build b = fresh(c);
    Node *x = graph_input(b.graph, NULL, type_tensor(&c->ir.types, F32, rank, dims));
    Node *y = build_node(&b, op, NULL, 1, (Node *[]){ x });
    assert_non_null(y);
    return ops_table.defs[op]->told(y);
}

static Status check_told(void *context)
{
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!def->told)
            continue;
        require(!op_reads_value(def, 0) && def->max_in == 1, "%s reads a value", def->name);
        require(is_told(context, (Op)i, 2, (int64_t[]){ 3, 4 }), "%s of a known type is not told", def->name);
        require(!is_told(context, (Op)i, 2, (int64_t[]){ 3, DIM_UNKNOWN }), "%s of 3 x ? is told", def->name);
        asked++;
    }
    assert_int_equal(asked, 2);
    return OK;
}

/* The call on an operand that is twice as long, with the number that says so; null where no number does. */
static Node *doubled(Context *c, const Node *call, int axis)
{
    const Type *from = in(call, 0)->type;
    const int64_t extent = from->dims[axis];
    int64_t dims[MAX_RANK];
    StatedNumber to;
    if (extent < 2 || !op_of(call)->extent(call, from, axis, extent, &to))
        return NULL;
    require(to.operand > 0 && to.operand < call->n_in, "%s: operand %d", op_of(call)->name, to.operand);
    const Tensor *list = constant(in(call, to.operand));
    if (!list || to.at < 0 || to.at >= tensor_elements(list) || tensor_get_i64(list, to.at) != extent)
        return NULL;
    memcpy(dims, from->dims, sizeof dims[0] * (size_t)from->rank);
    dims[axis] *= 2;
    Build b = fresh(c);
    Tensor *patched = tensor_new(&c->arena, list->type);
    memcpy(patched->data, list->data, list->bytes);
    tensor_set_i64(patched, to.at, 2 * extent);
    Node **ins = NEWS(&c->arena, Node *, call->n_in);
    ins[0] = graph_input(b.graph, NULL, type_tensor(&c->ir.types, from->dtype, from->rank, dims));
    for (int i = 1; i < call->n_in; i++)
        ins[i] = i == to.operand ? build_const(&b, patched)
                 : in(call, i)   ? build_const(&b, constant(in(call, i)))
                                 : NULL;
    Node *y = build_node(&b, call->op, call->attr, call->n_in, ins);
    require(y != NULL, "%s: a longer operand does not fit", op_of(call)->name);
    return y;
}

static Status check_extents(void *context)
{
    Context *c = context;
    int asked = 0, words = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        words += def->extent != NULL;
        for (int variant = 0; def->extent && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant);
            for (int axis = 0; y && axis < in(y, 0)->type->rank; axis++) {
                const Node *longer = doubled(c, y, axis);
                require(!longer || type_elements(longer->type) >= type_elements(y->type), "%s, variant %d: %s",
                        def->name, variant, type_text(&c->arena, longer->type));
                asked += longer && type_elements(longer->type) > type_elements(y->type);
            }
        }
    }
    require(asked > 10 && words == 3, "%d extents of %d words were asked", asked, words);
    return OK;
}

static void numbers_follow_extents(void **state)
{
    (void)state;
    with_context(check_told);
    with_context(check_extents);
}

/* ---- bodies ---- */

static bool are_alike(const Type *a, const Type *b)
{
    return a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->dtype == b->dtype;
}

/* What goes into an open body, and comes out of it, has one element type inside and outside. */
static void check_body(const Node *call, const BodyCard *body)
{
    const char *name = op_of(call)->name;
    for (int r = 0; r < call->n_regions; r++) {
        const Graph *g = call->regions[r];
        for (int k = 0; (size_t)k < g->n_inputs && body->first_operand + k < call->n_in; k++)
            require(!in(call, body->first_operand + k) ||
                        are_alike(in(call, body->first_operand + k)->type, g->inputs[k]->type),
                    "%s: parameter %d is not of its operand's type", name, k);
        for (int k = 0; k < type_results(call->type); k++)
            require(are_alike(type_result(call->type, k), graph_result(g, body->first_result + k)->type),
                    "%s: result %d is not of its body's type", name, k);
    }
    require(!body->turns || body->turns(call) >= -1, "%s: turns", name);
}

static Status check_bodies(void *context)
{
    Context *c = context;
    int open = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        const BodyCard *body = &def->body;
        require(def->n_regions || (!body->open && !body->keeps_types && !body->turns), "%s has no body", def->name);
        require(!body->open || !body->keeps_types, "%s is open and is not", def->name);
        for (int variant = 0; body->open && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant);
            if (y)
                check_body(sample_call(y), body);
            open += y != NULL;
        }
    }
    require(open > 30, "%d calls were seen", open);
    return OK;
}

static void bodies_hand_values_on(void **state)
{
    (void)state;
    with_context(check_bodies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combines_as_it_says),      cmocka_unit_test(compares_as_it_says),
        cmocka_unit_test(gives_its_operand),        cmocka_unit_test(likelihoods_add_up),
        cmocka_unit_test(operands_play_their_part), cmocka_unit_test(numbers_follow_extents),
        cmocka_unit_test(bodies_hand_values_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
