/* What cards say of which elements of a result an element of an operand reaches: another element there changes nothing
 * outside of them; and results that are written over an operand, element by element, are the same. */
#include "support/samples.h"
#include "support/walks.h"

static const EvalOptions plain = { .seed = 1 };
enum { MOST_POINTS = 20000, MOST_ELEMENTS = 600, TRIED = 3 };

/* One operand of a call, and an element of it that is about to become another one. */
typedef struct Poke {
    Context *c;
    Walk *w;
    int operand;
    int64_t element;
    char **announced; /* of each result, an element each */
    int64_t changed;
} Poke;

static Tensor *own(const Node *call, int i)
{
    return (Tensor *)(uintptr_t)constant(in(call, i));
}

static void change(Tensor *t, int64_t k)
{
    if (dtype_is_float(t->type->dtype))
        tensor_set_f64(t, k, at(t, k) * 1.5 + 0.375);
    else
        tensor_set_i64(t, k, t->type->dtype == BOOL ? !tensor_get_i64(t, k) : tensor_get_i64(t, k) ^ 1);
}

/* The same value is one of a running result: all that comes behind it on its line. */
static bool is_behind(const Walk *w, const int64_t *point)
{
    for (int s = 0; s < w->it.rank; s++)
        if (walk_is_folded(&w->it, s) ? w->point[s] < point[s] : w->point[s] != point[s])
            return false;
    return true;
}

static void announce_point(Poke *p)
{
    for (int r = 0; r < p->w->it.n_out; r++) {
        const int64_t k = walk_out(p->w, r);
        if (k >= 0)
            p->announced[r][k] = 1;
    }
}

static void announce_behind(Poke *p)
{
    Walk from = *p->w;
    for (walk_begin(&from); !from.ended; walk_step(&from)) {
        if (walk_in(&from, p->operand) != p->element)
            continue;
        for (walk_begin(p->w); !p->w->ended; walk_step(p->w))
            if (is_behind(p->w, from.point))
                announce_point(p);
    }
}

/* What is read beside a result, once for each of its elements. */
static void announce_beside(Poke *p)
{
    const Access *a = &p->w->it.in[p->operand];
    const Type *x = in(p->w->call, p->operand)->type, *y = access_result(p->w->call, 0);
    for (int64_t k = 0; k < type_elements(y); k++) {
        int64_t at[MAX_RANK], rest = k, number = 0;
        for (int d = y->rank - 1; d >= 0; rest /= y->dims[d], d--)
            at[d] = rest % y->dims[d];
        for (int d = 0; d < x->rank; d++) {
            int64_t place = a->base[d];
            for (int s = 0; s < y->rank; s++)
                place += a->step[d * y->rank + s] * at[s];
            number = number * x->dims[d] + place;
        }
        p->announced[0][k] |= number == p->element;
    }
}

static void announce(Poke *p)
{
    const Access *a = &p->w->it.in[p->operand];
    for (int r = 0; r < p->w->it.n_out; r++)
        p->announced[r] = NEWS(&p->c->arena, char, type_elements(access_result(p->w->call, r)) + 1);
    if (p->w->it.begins == p->operand)
        p->announced[0][p->element] = 1;
    if (a->reach == REACH_WHOLE) {
        for (int r = 0; r < p->w->it.n_out; r++)
            memset(p->announced[r], 1, (size_t)type_elements(access_result(p->w->call, r)));
        return;
    }
    if (a->reach == REACH_BESIDE) {
        announce_beside(p);
        return;
    }
    if (p->w->it.order == ORDER_SCAN) {
        announce_behind(p);
        return;
    }
    for (walk_begin(p->w); a->reach != REACH_TYPE && !p->w->ended; walk_step(p->w))
        if (walk_in(p->w, p->operand) == p->element)
            announce_point(p);
}

static bool differs(const Tensor *x, const Tensor *y, int64_t k)
{
    if (dtype_is_float(x->type->dtype))
        return memcmp(&(double){ at(x, k) }, &(double){ at(y, k) }, sizeof(double)) != 0;
    return tensor_get_i64(x, k) != tensor_get_i64(y, k);
}

/* What a call gives may be its operand itself, which is about to change. */
static Tensor *copied(Context *c, const Tensor *t)
{
    if (t->type->kind != TYPE_TENSOR) {
        Tensor *copy = NEW(&c->arena, Tensor);
        *copy = *t;
        copy->items = NEWS(&c->arena, Tensor *, type_results(t->type));
        for (int i = 0; i < type_results(t->type); i++)
            copy->items[i] = copied(c, t->items[i]);
        return copy;
    }
    Tensor *copy = tensor_new(&c->arena, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
    return copy;
}

static Tensor *evaluated(Context *c, Node *call)
{
    Tensor *out = NULL;
    graph_return(call->graph, 1, &call, NULL);
    return evaluate(call->graph, &plain, &c->heap, NULL, &out) == OK ? out : NULL;
}

static void compare(Poke *p, const Tensor *before, const Tensor *after)
{
    for (int r = 0; r < p->w->it.n_out; r++) {
        const Tensor *x = walk_result(before, r), *y = walk_result(after, r);
        for (int64_t k = 0; k < tensor_elements(x); k++) {
            const bool other = differs(x, y, k);
            require(!other || p->announced[r][k], "%s: element %d of operand %d reaches element %d of result %d\n",
                    op_of(p->w->call)->name, (int)p->element, p->operand, (int)k, r);
            p->changed += other;
        }
    }
}

/* How many elements of results another element changed. */
static int64_t poke(Context *c, Walk *w, int operand, int64_t element, const Tensor *before)
{
    char *announced[16];
    Poke p = { .c = c, .w = w, .operand = operand, .element = element, .announced = announced };
    Tensor *t = own(w->call, operand);
    const bool real = dtype_is_float(t->type->dtype);
    const double f = real ? at(t, element) : 0;
    const int64_t i = real ? 0 : tensor_get_i64(t, element);
    announce(&p);
    change(t, element);
    Tensor *after = evaluated(c, (Node *)(uintptr_t)w->call);
    if (after)
        compare(&p, before, after);
    if (after)
        tensor_drop(&c->heap, after);
    if (real)
        tensor_set_f64(t, element, f);
    else
        tensor_set_i64(t, element, i);
    return p.changed;
}

static bool is_small(const Walk *w, const Tensor *value)
{
    for (int r = 0; r < w->it.n_out; r++)
        if (!is_numbers(walk_result(value, r)))
            return false;
    return w->it.n_out <= 16 && walk_points(w) <= MOST_POINTS;
}

/* Whether elements of an operand are numbers to be changed: neither steering nor of another kind. */
static bool is_data(const Node *call, int i)
{
    return in(call, i) && !op_steers(op_of(call), i) && is_numbers(constant(in(call, i)));
}

static Status visit(void *tour)
{
    CardTour *t = tour;
    int64_t changed = 0;
    int poked = 0;
    for (int variant = 0; variant < t->def->n_variants; variant++) {
        Node *y = sample_of(t->c, t->def, variant);
        const Tensor *before = y ? value_of(t->c, sample_call(y), &plain) : NULL;
        Walk w;
        if (!before || !walk_open(&w, t->c, sample_call(y)) || !is_small(&w, before))
            continue;
        before = copied(t->c, before);
        Rng rng = { seed_of(t->def->name, (uint64_t)variant + 1000) };
        for (int i = 0; i < w.call->n_in; i++) {
            const int64_t n = is_data(w.call, i) ? tensor_elements(constant(in(w.call, i))) : 0;
            for (int k = 0; k < TRIED && n > 0; k++, poked++)
                changed += poke(t->c, &w, i, rng_below(&rng, n), before);
        }
    }
    t->n += poked;
    t->said += poked > 0;
    if (poked > 20)
        require(changed || t->def->access.type_only || !t->def->differentiable, "%s: %d elements, nothing changes\n",
                t->def->name, poked);
    return OK;
}

static void nothing_changes_outside(void **state)
{
    (void)state;
    CardTour t = { 0 };
    assert_int_equal(each_card(&t, visit), 0);
    require(t.n > 5000 && t.said > 120, "%d elements of %d words\n", t.n, t.said);
}

/* ---- over an operand ---- */

static void put_element(Tensor *to, const Tensor *from, int64_t k)
{
    if (dtype_is_float(to->type->dtype))
        tensor_set_f64(to, k, at(from, k));
    else
        tensor_set_i64(to, k, tensor_get_i64(from, k));
}

/* Element after element, what the call gives is put where the operand lies, and the call reads that. */
static void run_over(CardTour *t, Node *call, int result, int operand, const Tensor *want)
{
    Tensor *x = own(call, operand);
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        Tensor *now = evaluated(t->c, call);
        assert_non_null(now);
        put_element(x, walk_result(now, result), k);
        tensor_drop(&t->c->heap, now);
    }
    require(tensor_same(x, want), "%s: result %d over operand %d is another one\n", t->def->name, result, operand);
}

static Status visit_over(void *tour)
{
    enum { MOST = 40, EACH = 4 };
    CardTour *t = tour;
    int runs = 0;
    for (int variant = 0; variant < t->def->n_variants && runs < EACH; variant++) {
        Node *y = sample_of(t->c, t->def, variant), *call = y ? sample_call(y) : NULL;
        for (int i = 0; call && i < call->n_in; i++)
            for (int r = 0; r < type_results(call->type); r++) {
                const Tensor *x = in(call, i) ? constant(in(call, i)) : NULL;
                if (!is_numbers(x) || access_alias(call, r, i, &t->c->arena) != ALIAS_OVER || !tensor_elements(x) ||
                    tensor_elements(x) > MOST)
                    continue;
                y = sample_of(t->c, t->def, variant);
                const Tensor *want = evaluated(t->c, sample_call(y));
                if (!want)
                    continue;
                run_over(t, sample_call(y), r, i, copied(t->c, walk_result(want, r)));
                runs++;
            }
    }
    t->said += runs;
    return OK;
}

static void results_may_be_written_over_operands(void **state)
{
    (void)state;
    CardTour t = { 0 };
    assert_int_equal(each_card(&t, visit_over), 0);
    require(t.said > 100, "%d runs\n", t.said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes_outside),
        cmocka_unit_test(results_may_be_written_over_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
