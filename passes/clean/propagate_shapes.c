/* propagate-shapes: asks every card again what type its call has, until nothing more comes out.
 *
 *     graph @f(%x: f32[2,3], %y: f32[?,?]) -> (%b) {
 *         %a: f32[?,?] = transpose(%x)
 *         %b: f32[?,?] = add(%a, %y)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %y: f32[?,?]) -> (%b) {
 *         %a: f32[3,2] = transpose(%x)
 *         %b: f32[3,2] = add(%a, %y)
 *     }
 *
 * What a model declares and what a card infers are both true: a value gets what they say together.  What a body
 * captures has inside the type that it has outside, and what a scan cuts is a slice.
 *
 * What a loop carries may change its shape from turn to turn.  It does not where a body that is given the shape of the
 * first turn gives it again: that is tried with all states of all loops at once; those that fail are left out, and the
 * others tried again. */
#include "ops/control/control.h"
#include "passes/engine/pass.h"

/* A state whose type is supposed to be that of its first value. */
typedef struct Guess {
    const Node *loop;
    Node *parameter;
    int operand, result;
    bool wrong;
} Guess;

typedef struct Saved {
    Node *node;
    const Type *type;
} Saved;

typedef struct Shapes {
    Graph *g;
    PassRun *run;
    Arena *scratch;
    Guess *guesses;
    size_t n_guesses, cap_guesses;
    Facts wrong; /* of a parameter: its type changes from turn to turn */
    bool trying; /* a mistake is no error then, but says who is to blame */
    const Node *mistake;
    bool changed;
} Shapes;

static bool meet(Shapes *s, Node *n, const Type *type)
{
    if (!type || !type_agrees(type, n->type))
        return !type;
    type = type_meet(&n->graph->ir->types, type, n->type);
    s->changed |= type != n->type;
    n->type = type;
    return true;
}

static Status ask(Shapes *s, Node *n)
{
    const char *complaint = NULL;
    Ir *ir = n->graph->ir;
    const Type *type = node_infer(n, &complaint);
    if (type && meet(s, n, type))
        return OK;
    s->mistake = n;
    if (s->trying)
        return INVALID;
    if (!type)
        return fail(ir->diag, node_place(n), "%s %s", op_of(n)->name, complaint);
    return fail(ir->diag, node_place(n), "%s gives %s, declared is %s", op_of(n)->name,
                type_text(ir->diag->arena, type), type_text(ir->diag->arena, n->type));
}

static void enter_regions(Shapes *s, Node *n)
{
    for (int r = 0; r < n->n_regions; r++)
        for (size_t k = 0; k < n->regions[r]->n_inputs; k++)
            meet(s, n->regions[r]->inputs[k], parameter_type(n, r, (int)k));
}

/* Types only become more certain, so this ends. */
static Status settle(Shapes *s)
{
    bool again = true;
    while (again) {
        s->changed = false;
        for (size_t i = 0; s->trying && i < s->n_guesses; i++)
            meet(s, s->guesses[i].parameter, in(s->guesses[i].loop, s->guesses[i].operand)->type);
        for (Node *n = walk_first(s->g); n; n = walk_next(s->g, n)) {
            if (!type_known(n->type))
                TRY(ask(s, n));
            enter_regions(s, n);
        }
        again = s->changed;
        s->run->changes += again && !s->trying;
    }
    return OK;
}

/* ---- what loops carry ---- */

static void find_guesses(Shapes *s)
{
    s->n_guesses = 0;
    for (Node *n = walk_first(s->g); n; n = walk_next(s->g, n)) {
        int operand, result;
        for (int i = 0; n->n_regions && state_of_call(n, i, &operand, &result); i++) {
            Node *p = n->regions[0]->inputs[operand];
            if (p->type->kind != TYPE_TENSOR || type_known(p->type) || *(bool *)fact(&s->wrong, p))
                continue;
            GROW(s->scratch, s->guesses, s->n_guesses, s->cap_guesses);
            s->guesses[s->n_guesses++] = (Guess){ n, p, operand, result, false };
        }
    }
}

static Saved *save_types(Shapes *s, size_t *n)
{
    Saved *saved = NULL;
    size_t cap = 0;
    *n = 0;
    for (Node *at = walk_first(s->g); at; at = walk_next(s->g, at)) {
        GROW(s->scratch, saved, *n, cap);
        saved[(*n)++] = (Saved){ at, at->type };
        for (int r = 0; r < at->n_regions; r++)
            for (size_t k = 0; k < at->regions[r]->n_inputs; k++) {
                GROW(s->scratch, saved, *n, cap);
                saved[(*n)++] = (Saved){ at->regions[r]->inputs[k], at->regions[r]->inputs[k]->type };
            }
    }
    return saved;
}

/* By induction over the turns: the first value fits the parameter, and then every result does. */
static bool holds(const Guess *k)
{
    Types *types = &k->parameter->graph->ir->types;
    const Type *p = k->parameter->type;
    return type_join(types, p, in(k->loop, k->operand)->type) == p &&
           type_join(types, p, graph_result(k->loop->regions[0], k->result)->type) == p;
}

/* A mistake is one of the loop that it is seen at, or of those around it. */
static bool is_to_blame(const Shapes *s, const Guess *k)
{
    for (const Node *n = s->mistake; n; n = n->graph->owner)
        if (n == k->loop)
            return true;
    return false;
}

/* Marks wrong guesses, the surest ones first, and counts them: after a mistake there is one at least. */
static size_t find_wrong(Shapes *s, bool fits)
{
    enum { BLAMED_AND_FALSE, BLAMED, ANY, N_LEVELS };
    size_t wrong = 0;
    for (int level = 0; level < (fits ? 1 : N_LEVELS) && !wrong; level++)
        for (size_t i = 0; i < s->n_guesses; i++) {
            Guess *k = &s->guesses[i];
            const bool blamed = fits || level == ANY || is_to_blame(s, k);
            wrong += k->wrong = blamed && (level != BLAMED_AND_FALSE || !holds(k));
        }
    return wrong;
}

/* Tries the guesses together; whether there is nothing more to try. */
static bool try_guesses(Shapes *s)
{
    size_t n_saved;
    const ArenaMark mark = arena_mark(s->scratch);
    const Saved *saved = save_types(s, &n_saved);
    s->trying = true;
    const bool fits = settle(s) == OK;
    s->trying = false;
    const size_t wrong = find_wrong(s, fits);
    for (size_t i = 0; wrong && i < n_saved; i++)
        saved[i].node->type = saved[i].type;
    arena_reset(s->scratch, mark);
    s->run->changes += !wrong;
    for (size_t i = 0; i < s->n_guesses; i++)
        if (s->guesses[i].wrong)
            *(bool *)fact(&s->wrong, s->guesses[i].parameter) = true;
    return !wrong;
}

static Status propagate_shapes(Graph *g, PassRun *run)
{
    Shapes s = { .g = g, .run = run, .scratch = run->scratch, .wrong = facts_open(run->scratch, sizeof(bool)) };
    TRY(settle(&s));
    do
        find_guesses(&s);
    while (s.n_guesses && !try_guesses(&s));
    return OK;
}

const Pass pass_propagate_shapes = {
    .name = "propagate-shapes", .makes = TYPED, .may = EXACT, .run = propagate_shapes
};
