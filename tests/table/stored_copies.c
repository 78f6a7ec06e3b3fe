/* label: slow */
/* A weight that is stored as codes, or in few bits, has no other form across a step, and none from one side of it to another: of
 * stored models by every kind of storing, the states of a step and the buffers of its plan.
 *
 * A copy is a value that depends on a weight alone (its state, its scale, its zero points, and constants) and has as many
 * elements or more: cast, dequantized, turned, cut in blocks, whatever words that took. */
#include "api/hall/lower.h"
#include "ir/role.h"
#include "ir/text/parse.h"
#include "passes/lower/plan_memory.h"
#include "support/stored_steps.h"

/* What a value depends on. */
typedef struct Of {
    const Node *weight; /* null: on constants alone */
    bool more;          /* on something else too */
} Of;

typedef struct Looking {
    const Plan *plan;
    Arena *arena;
    Facts of;          /* Of, by node */
    Facts parts;       /* StepPart, by node */
    const Node **call; /* by number */
    int64_t copies, weights;
    const char *wrong; /* null: nothing so far */
} Looking;

static int64_t steps, weights, copies;

#define WRONG(l, ...) ((l)->wrong = (l)->wrong ? (l)->wrong : arena_printf((l)->arena, __VA_ARGS__))

/* ---- what depends on what ---- */

static Of *of(Looking *l, const Node *n)
{
    return fact(&l->of, n);
}

static void meet(Of *a, const Of *b)
{
    a->more |= b->more || (a->weight && b->weight && a->weight != b->weight);
    a->weight = a->weight ? a->weight : b->weight;
}

static const Node *weight_of(const Graph *g, const Node *state)
{
    const RoleMark mark = node_role(state);
    if (node_stored(state))
        return state;
    for (size_t i = 0; i < g->n_inputs && mark.role == STATE_quant && mark.of; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, mark.of) == 0 && node_stored(g->inputs[i]))
            return g->inputs[i];
    return NULL;
}

/* Constants depend on nothing; a part of a region on what its result does, one of another call on all that goes in. */
static void follow(Looking *l, const Node *n)
{
    const Node *from = n->op == OP_part ? in(n, 0) : NULL;
    if (from && from->n_regions == 1) {
        *of(l, n) = *of(l, graph_result(from->regions[0], (int)((const PartAttr *)n->attr)->index));
        return;
    }
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i))
            meet(of(l, n), of(l, in(n, i)));
}

/* The body of a region reads its operands as they are; a loop is taken as one call. */
static void follow_region(Looking *l, const Node *n)
{
    const Graph *body = n->regions[0];
    for (size_t k = 0; k < body->n_inputs && (int)k < n->n_in; k++)
        if (in(n, (int)k))
            *of(l, body->inputs[k]) = *of(l, in(n, (int)k));
    for (const Node *inner = body->first; inner; inner = inner->next)
        follow(l, inner);
}

static void follow_all(Looking *l)
{
    const Graph *g = l->plan->graph;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *x = g->inputs[i], *weight = x->op == OP_state ? weight_of(g, x) : NULL;
        *of(l, x) = (Of){ weight, !weight };
        l->weights += weight == x;
    }
    for (const Node *n = g->first; n; n = n->next) {
        follow(l, n);
        if (n->n_regions == 1 && n->op == OP_fused)
            follow_region(l, n);
        for (int r = 0; r < n->n_regions && n->op != OP_fused; r++)
            for (int k = 0; k < graph_n_results(n->regions[r]); k++)
                *of(l, graph_result(n->regions[r], k)) = (Of){ NULL, true };
    }
}

/* ---- states ---- */

/* Beside a stored weight there are its scale, its zero points and what an optimizer remembers of its gradients. */
static void look_at_state(Looking *l, const Node *state)
{
    const Graph *g = l->plan->graph;
    const RoleMark mark = node_role(state);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *w = g->inputs[i];
        if (!mark.of || !w->name || !node_stored(w) || strcmp(w->name, mark.of) != 0 || mark.role == STATE_moment)
            continue;
        if (mark.role != STATE_quant || type_elements(state->type) > type_elements(w->type))
            WRONG(l, "%s is a copy of %s", state->name, w->name);
    }
}

/* ---- buffers ---- */

typedef enum Side { FORWARD, BACKWARD, UPDATE } Side;

static const char *const side_words[] = { "forward", "backward", "update" };

/* Behind the last call late ones run, of the update. */
static Side side_of(Looking *l, int call)
{
    const StepPart part = call < l->plan->n_calls ? (StepPart) * (int *)fact(&l->parts, l->call[call]) : STEP_LATE;
    return part == STEP_FORWARD ? FORWARD : part == STEP_BACKWARD ? BACKWARD : UPDATE;
}

static void look_at_value(Looking *l, const Node *n, int result, const Type *type, const Of *of_it)
{
    const PlanValue v = plan_value(l->plan, n, result);
    if (!of_it->weight || of_it->more || type->kind != TYPE_TENSOR ||
        type_elements(type) < type_elements(of_it->weight->type))
        return;
    if (v.next != PLAN_NO_NEXT)
        WRONG(l, "%s, of %s alone, is kept as result %d", n->name ? n->name : op_of(n)->name, of_it->weight->name,
              v.next);
    if (v.buffer == PLAN_ELSEWHERE) /* another look at the state */
        return;
    const PlanBuffer *b = &l->plan->buffers[v.buffer];
    l->copies++;
    if (side_of(l, b->first) != side_of(l, b->last))
        WRONG(l, "%s, of %s alone, lives from %s to %s", n->name ? n->name : op_of(n)->name, of_it->weight->name,
              side_words[side_of(l, b->first)], side_words[side_of(l, b->last)]);
}

static void look_at_call(Looking *l, const Node *n)
{
    const bool region = n->op == OP_fused;
    const int results = n->type->kind == TYPE_TUPLE ? n->type->n_parts : 1;
    for (int i = 0; i < results && n->op != OP_part && n->op != OP_const; i++)
        look_at_value(l, n, i, n->type->kind == TYPE_TUPLE ? n->type->parts[i] : n->type,
                      of(l, region ? graph_result(n->regions[0], i) : n));
}

static void look_at_results(Looking *l)
{
    const Graph *g = l->plan->graph;
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *n = graph_result(g, i);
        const Of *of_it = n ? of(l, n) : NULL;
        if (n && n->op != OP_state && of_it->weight && !of_it->more && n->type->kind == TYPE_TENSOR &&
            type_elements(n->type) >= type_elements(of_it->weight->type))
            WRONG(l, "result %d, of %s alone, is there behind the step", i, of_it->weight->name);
    }
}

/* What is wrong with a step that has this plan; null: nothing. */
static Looking look(const Plan *plan, Arena *arena)
{
    const Graph *g = plan->graph;
    Looking l = { .plan = plan,
                  .arena = arena,
                  .of = facts_open(arena, sizeof(Of)),
                  .parts = step_parts(g, arena),
                  .call = NEWS(arena, const Node *, plan->n_calls + 1) };
    int at = 0;
    for (const Node *n = g->first; n; n = n->next)
        l.call[at++] = n;
    follow_all(&l);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state)
            look_at_state(&l, g->inputs[i]);
    look_at_results(&l);
    for (const Node *n = g->first; n; n = n->next)
        look_at_call(&l, n);
    return l;
}

/* ---- it sees what it is to see ---- */

#define HEAD                                                                                                           \
    "graph @step(%x: f32[2,3], state %w: i8[4,3] stored=\"int8:row:narrow:sr:stored\" trained, "                       \
    "state %s: f32[4,1] role=quant of=%w"
#define PRODUCT                                                                                                        \
    "    %f: f32[4,3] = cast(%w, to=f32)\n"                                                                            \
    "    %y: f32[2,4] = matmul(%x, %f, tb=true)\n"
#define BODY ") -> (%y, %z) {\n" PRODUCT

static const struct {
    const char *text, *wrong;
} made[] = {
    { HEAD BODY "    %b: f32[4,3] = cast(%w, to=f32) side=backward\n"
                "    %z: f32[2,3] = matmul(%y, %b) side=backward\n}\n",
      NULL },
    { HEAD BODY "    %z: f32[2,3] = matmul(%y, %f) side=backward\n}\n", "lives from forward to backward" },
    { HEAD BODY "    %n: f32[4,3] = mul(%f, %s)\n    %z: f32[3,4] = transpose(%n, perm=[1,0])\n}\n",
      "is there behind the step" },
    { HEAD ", state %c: f32[4,3] role=master of=%w" BODY "    %z: f32[2,4] = relu(%y)\n}\n", "c is a copy of w" },
    { HEAD ", state %c: f16[4,3] role=shadow of=%w" BODY "    %z: f32[2,4] = relu(%y)\n}\n", "c is a copy of w" },
};

static Status look_at_made(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < COUNT(made); i++) {
        Module *m;
        Plan plan;
        const Node *where = NULL;
        assert_int_equal(parse_module(&c->ir, &c->arena, str(made[i].text), "made", NULL, NULL, &m), OK);
        assert_true(plan_memory(m->graphs[0], &c->arena, &plan, &where));
        const Looking l = look(&plan, &c->arena);
        assert_int_equal(l.weights, 1);
        if (made[i].wrong ? !l.wrong || !strstr(l.wrong, made[i].wrong) : l.wrong != NULL)
            print_error("graph %zu: %s\n", i, l.wrong ? l.wrong : "nothing is wrong");
        assert_true(made[i].wrong ? l.wrong && strstr(l.wrong, made[i].wrong) : !l.wrong);
    }
    return OK;
}

static void copies_are_seen(void **state)
{
    (void)state;
    with_context(look_at_made);
}

/* ---- models ---- */

static Status look_at_step(void *step)
{
    StoredStep *k = step;
    const Lowered low = lower_graph(module_graph(k->step->module, "step"), &k->s->c.arena);
    HOLDS(k, low.program, "%s: %s\n", k->options, low.why);
    const Looking l = look(&low.plan, &k->s->c.arena);
    HOLDS(k, !l.wrong, "%s: %s\n", k->options, l.wrong);
    steps += l.weights > 0;
    weights += l.weights;
    copies += l.copies;
    return OK;
}

static void visit(StoredStep *k)
{
    assert_int_equal(guarded(k->step->module->ir->memory, look_at_step, k), OK);
}

static void weights_have_one_form(void **state)
{
    static const char *const records[] = {
        "--quant int8-weights --optimizer adamw:states=8bit,states_min=64",
        "--quant int8-weights --quant-op op:Gather=w=int8:row:sr:stored --optimizer sgd:momentum=0.9 --amp bf16",
        "--quant int8-weights --optimizer adamw:sticky=true,scale_decay=true --amp fp16 --clip-norm 1",
        "--quant bf16-weights --optimizer lion",
        "--quant w=int4:group=2:sr:stored,a=off --optimizer adamw:states=4bit,states_min=64",
        "--quant w=uint8:row:asym:rne:stored,a=off --optimizer adamw --telemetry on",
        "--quant w=uint4:tensor:asym:sr:stored,a=off --optimizer sgd",
        NULL,
    };
    StoredSteps all = { .records = records, .visit = visit };
    (void)state;
    stored_steps(&all);
    print_message("%zu models, %d steps with %d stored weights and %d copies of them in between, %zu refused\n",
                  all.models, (int)steps, (int)weights, (int)copies, all.refused);
    assert_true(all.models >= 90 && steps > 500 && weights > 2000 && copies > 2 * weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_seen),
        cmocka_unit_test(weights_have_one_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
