#include <string.h>

#include "passes/clean/constant_values.h"
#include "passes/model/candidates.h"

static bool is_here(const Choosing *c, const Candidate *k)
{
    return k->node->graph == c->graph && !k->tied_to;
}

/* Tied parameters are one: frozen where one of them is. */
static void tie(Choosing *c, Candidate *to, Candidate *twin, bool transposed)
{
    const bool trained = to->choice.kind == CHOICE_TRAINED && twin->choice.kind == CHOICE_TRAINED;
    if (!trained) {
        Candidate *other = to->choice.kind == CHOICE_TRAINED ? to : twin;
        const Candidate *frozen = other == to ? twin : to;
        if (other->choice.kind == CHOICE_TRAINED)
            choose(other, CHOICE_CONSTANT,
                   arena_printf(c->graph->arena, "equals %s, which is not trained", frozen->choice.path));
        return;
    }
    twin->tied_to = to->node;
    twin->choice.tied_to = to->choice.name;
    twin->choice.transposed = transposed;
    choose(twin, CHOICE_TIED,
           arena_printf(c->graph->arena, "equals %s%s", to->choice.path, transposed ? " transposed" : ""));
}

/* Whether two parameters hold the same, and how: where both ways fit, what the exporter says of them decides. */
static bool are_one(const Candidate *a, const Candidate *b, bool *transposed)
{
    const bool likely = ((a->node->flags ^ b->node->flags) & NODE_TURNED) != 0;
    for (int i = 0; i < 2; i++) {
        *transposed = i ? !likely : likely;
        if (are_equal(a->node, b->node, *transposed))
            return true;
    }
    return false;
}

/* ---- what the exporter says ---- */

/* The first of several is the one that others are made from: better not a transposed one. */
static Candidate *better(Candidate *a, Candidate *b)
{
    return a->node->flags & NODE_TURNED && !(b->node->flags & NODE_TURNED) ? b : a;
}

static Status tie_same_name(Choosing *c, Candidate *to, Candidate *twin)
{
    bool transposed;
    if (are_one(to, twin, &transposed)) {
        tie(c, to, twin, transposed);
        return OK;
    }
    return warn(c->run->diag, NOWHERE,
                "%s and %s are both %s, the exporter says, and hold different values: trained apart", to->node->name,
                twin->node->name, to->node->label);
}

static Status by_name(Choosing *c)
{
    Map first;
    map_open(&first, c->scratch);
    for (size_t i = 0; i < c->n; i++) {
        Candidate *k = &c->list[i];
        if (!(k->node->flags & NODE_PARAMETER) || !k->node->label || !is_here(c, k))
            continue;
        MapEntry *e = map_put(&first, k->node->label, NULL);
        e->value.p = e->value.p ? better(e->value.p, k) : k;
    }
    for (size_t i = 0; i < c->n; i++) {
        Candidate *k = &c->list[i];
        const MapEntry *e = k->node->label ? map_find(&first, k->node->label) : NULL;
        if (e && k != e->value.p && k->node->flags & NODE_PARAMETER && is_here(c, k))
            TRY(tie_same_name(c, e->value.p, k));
    }
    return OK;
}

/* ---- what the user says ---- */

static Candidate *find(const Choosing *c, const char *name, size_t n)
{
    for (size_t i = 0; i < c->n; i++) {
        const Choice *x = &c->list[i].choice;
        if ((strlen(x->name) == n && memcmp(x->name, name, n) == 0) ||
            (strlen(x->path) == n && memcmp(x->path, name, n) == 0))
            return &c->list[i];
    }
    return NULL;
}

static Status not_found(const Choosing *c, const char *pair, const char *name)
{
    const char **names = NEWS(c->scratch, const char *, c->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].choice.kind == CHOICE_TRAINED)
            names[n++] = c->list[i].choice.path;
    const char *nearest = str_nearest(name, names, n);
    Message *m =
        message_new(c->run->diag, SEVERITY_ERROR, USAGE, NOWHERE, "--tie %s: no parameter is called %s", pair, name);
    if (nearest)
        message_try(m, "%s", nearest);
    return message_send(m);
}

static Status by_option(Choosing *c, const char *pair)
{
    const char *sign = strchr(pair, '='), *second = sign + 1;
    Candidate *a = find(c, pair, (size_t)(sign - pair)), *b = find(c, second, strlen(second));
    bool transposed;
    if (!a || !b)
        return not_found(c, pair, a ? second : arena_copy(c->scratch, pair, (size_t)(sign - pair)));
    if (b->tied_to == a->node || a->tied_to == b->node)
        return OK;
    if (a == b || a->choice.kind != CHOICE_TRAINED || b->choice.kind != CHOICE_TRAINED || !is_here(c, a) ||
        !is_here(c, b))
        return fail_as(c->run->diag, USAGE, NOWHERE, "--tie %s: %s is no parameter of its own that is trained", pair,
                       b->choice.kind != CHOICE_TRAINED ? b->choice.path : a->choice.path);
    if (!are_one(a, b, &transposed))
        return fail_as(c->run->diag, USAGE, NOWHERE,
                       "--tie %s: %s and %s hold different values, as they are and transposed", pair,
                       type_text(c->scratch, a->node->type), type_text(c->scratch, b->node->type));
    tie(c, a, b, transposed);
    return OK;
}

/* ---- what the exporter computed ---- */

enum { TOO_SMALL = 64 }; /* elements that may be equal by chance */

static bool is_float(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

/* A parameter that the model reads turned as well, a table that is also the head, is in the file twice where the exporter folds: as itself,
 * and as a value that the exporter computed.  Apart, one would be trained and the other would stay what it was. */
static void by_copies(Choosing *c, Candidate *to)
{
    bool transposed;
    for (size_t i = 0; i < c->n; i++) {
        Candidate *twin = &c->list[i];
        if (!is_computed(twin) || !is_here(c, twin) || !is_float(twin->node) || !twin->node->name ||
            !(is_copy(to->node, twin->node, transposed = true) || is_copy(to->node, twin->node, transposed = false)))
            continue;
        choose(twin, CHOICE_TRAINED, "a copy of a parameter");
        tie(c, to, twin, transposed);
    }
}

/* ---- what nobody says ---- */

static bool is_table(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u == u->user->in && op_looks_up(op_of(u->user)))
            return true;
    return false;
}

/* Whether n is the second factor of a product whose first is as good a weight. */
static bool is_factor(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u == u->user->in + 1 && is_symmetric(u->user))
            return true;
    return false;
}

static bool may_be_head(const Candidate *table, const Candidate *weight)
{
    return table->node != weight->node && !weight->tied_to && is_factor(weight->node) && !is_table(weight->node);
}

/* Small tensors may be equal by chance, or because nothing has trained them yet. */
static Status by_guess(Choosing *c, Candidate *table)
{
    enum { LEAST = 4096 };
    bool transposed;
    const int64_t elements = type_elements(table->node->type);
    for (size_t i = 0; i < c->n && elements >= TOO_SMALL; i++) {
        Candidate *weight = &c->list[i];
        if (weight->node->graph != c->graph || !may_be_head(table, weight) ||
            !(is_copy(table->node, weight->node, transposed = true) ||
              is_copy(table->node, weight->node, transposed = false)))
            continue;
        if (elements >= LEAST) {
            tie(c, table, weight, transposed);
        } else if (table->choice.kind == CHOICE_TRAINED && weight->choice.kind == CHOICE_TRAINED) {
            Message *m = message_new(c->run->diag, SEVERITY_WARNING, OK, NOWHERE,
                                     "%s and %s are equal%s and are trained apart: fewer than %d elements may be so by "
                                     "chance",
                                     table->choice.path, weight->choice.path, transposed ? ", transposed," : "", LEAST);
            message_try(m, "--tie %s=%s if the model ties them", table->choice.path, weight->choice.path);
            TRY(message_send(m));
        }
    }
    return OK;
}

Status find_ties(Choosing *c)
{
    if (c->recipe->untied)
        return OK;
    TRY(by_name(c));
    for (size_t i = 0; i < c->n; i++) {
        Candidate *k = &c->list[i];
        if (k->choice.kind == CHOICE_TRAINED && k->node->flags & NODE_PARAMETER && is_here(c, k) &&
            type_elements(k->node->type) >= TOO_SMALL)
            by_copies(c, k);
    }
    for (size_t i = 0; i < c->recipe->n_ties; i++)
        TRY(by_option(c, c->recipe->ties[i]));
    for (size_t i = 0; i < c->n && !c->evidence && !c->recipe->n_ties; i++) {
        Candidate *table = &c->list[i];
        if (is_float(table->node) && is_table(table->node) && is_here(c, table))
            TRY(by_guess(c, table));
    }
    return OK;
}
