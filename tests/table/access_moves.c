/* What a card says of words that move elements: each element of a result is the one that its walk leads to, bit for bit,
 * so a view is its operand read in another way, and what is put together lies in its piece of the whole. */
#include "support/samples.h"
#include "support/walks.h"

static const EvalOptions plain = { .seed = 1 };

static bool same_element(const Tensor *x, int64_t i, const Tensor *y, int64_t k)
{
    if (dtype_is_float(x->type->dtype))
        return memcmp(&(double){ at(x, i) }, &(double){ at(y, k) }, sizeof(double)) == 0;
    return tensor_get_i64(x, i) == tensor_get_i64(y, k);
}

static bool is_fill(const Walk *w, const Tensor *y, int64_t k)
{
    if (w->it.fill_by != NO_OPERAND)
        return same_element(constant(in(w->call, w->it.fill_by)), 0, y, k);
    return at(y, k) == w->it.fill;
}

/* The element that some operand has for a point; at most one operand has any. */
static bool comes_from(const Walk *w, const Tensor *y, int64_t k, bool *told)
{
    for (int i = 0; i < w->it.n_in; i++) {
        if (!in(w->call, i) || i == w->it.fill_by || op_steers(op_of(w->call), i) || !walk_has_place(&w->it.in[i]))
            continue;
        const int64_t from = walk_in(w, i);
        if (from == WALK_NOWHERE)
            continue;
        *told = true;
        return from == WALK_FILL ? is_fill(w, y, k) : same_element(constant(in(w->call, i)), from, y, k);
    }
    return true;
}

static bool is_masked(const Walk *w)
{
    for (int i = 0; i < w->it.n_in; i++)
        if (w->it.in[i].guard == GUARD_MASK)
            return true;
    return false;
}

/* Every element of every result is written once, by the element that the walk says. */
static int64_t follow(Walk *w, Context *c, const Tensor *value)
{
    int64_t told = 0;
    for (int r = 0; r < w->it.n_out; r++) {
        const Tensor *y = walk_result(value, r);
        const int64_t n = tensor_elements(y);
        char *written = NEWS(&c->arena, char, n + 1);
        for (walk_begin(w); !w->ended; walk_step(w)) {
            const int64_t k = walk_out(w, r);
            bool said = false;
            if (k < 0)
                continue;
            const bool again = written[k];
            written[k] = 1;
            require(!again, "%s writes element %d twice\n", op_of(w->call)->name, (int)k);
            require(comes_from(w, y, k, &said), "%s: element %d is another one\n", op_of(w->call)->name, (int)k);
            told += said;
        }
        for (int64_t k = 0; k < n; k++)
            require(written[k], "%s leaves element %d out\n", op_of(w->call)->name, (int)k);
    }
    return told;
}

static Status visit(void *tour)
{
    CardTour *t = tour;
    const AccessKind kind = t->def->access.kind;
    for (int variant = 0; (kind == ACCESS_MOVE || kind == ACCESS_GATHER) && variant < t->def->n_variants; variant++) {
        Node *y = sample_of(t->c, t->def, variant);
        const Tensor *value = y ? value_of(t->c, sample_call(y), &plain) : NULL;
        Walk w;
        if (!value || !is_numbers(walk_result(value, 0)) || !walk_open(&w, t->c, sample_call(y)) || is_masked(&w))
            continue;
        if (in(w.call, 0) && access_result(w.call, 0)->dtype != in(w.call, 0)->type->dtype)
            continue; /* bits that are read as another type */
        t->n++;
        t->said += (int)follow(&w, t->c, value);
    }
    return OK;
}

static void moves_lead_where_their_cards_say(void **state)
{
    (void)state;
    CardTour t = { 0 };
    assert_int_equal(each_card(&t, visit), 0);
    require(t.n > 300 && t.said > 10000, "%d calls, %d elements\n", t.n, t.said);
}

/* A view is flat or affine, and reads each point; what is made inside a result has a piece of it for itself. */
static Status visit_aliases(void *tour)
{
    CardTour *t = tour;
    for (int variant = 0; variant < t->def->n_variants; variant++) {
        Node *y = sample_of(t->c, t->def, variant);
        Node *call = y ? sample_call(y) : NULL;
        for (int i = 0; call && i < call->n_in; i++)
            for (int r = 0; r < type_results(call->type); r++) {
                const AliasHow how = access_alias(call, r, i, &t->c->arena);
                Walk w;
                if (how != ALIAS_VIEW && how != ALIAS_INTO)
                    continue;
                t->said++;
                require(walk_open(&w, t->c, call), "%s has an alias without a walk\n", t->def->name);
                require(t->def->access.kind == ACCESS_MOVE, "%s computes\n", t->def->name);
                const Access *x = &w.it.in[i];
                require(x->reach == REACH_FLAT || x->reach == REACH_AFFINE, "%s is no view\n", t->def->name);
                if (how == ALIAS_VIEW)
                    require(x->guard == GUARD_NONE && x->piece_dim == NO_PIECE, "%s reads beside it\n", t->def->name);
            }
    }
    return OK;
}

static void views_move_nothing(void **state)
{
    (void)state;
    CardTour t = { 0 };
    assert_int_equal(each_card(&t, visit_aliases), 0);
    require(t.said > 200, "%d aliases\n", t.said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_lead_where_their_cards_say),
        cmocka_unit_test(views_move_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
