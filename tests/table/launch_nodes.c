/* The models of tests/data as training steps: which nodes of the step run in which launch of its program.  Every launch
 * names its nodes, every node that computes has a launch or a reason why not, and following them changes no program. */
#include <string.h>

#include "api/make/launch_nodes.h"
#include "api/make/launches.h"
#include "api/make/step.h"
#include "support/stored.h"

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
} Case;

static int64_t graphs, launches, ours, held, launched, idle, joined, opened, on_both_sides;

static bool computes(const Node *n)
{
    return n->op != OP_const && n->op != OP_param && n->op != OP_state && !node_is_input(n) && !node_is_holder(n);
}

static bool is_in(int launch, const NodeLaunches *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->launches[i] == launch)
            return true;
    return false;
}

/* The word, or that of the call that keeps what its gradient needs. */
static bool is_word(const Node *lowered, const Node *n)
{
    return lowered->op == n->op || (lowered->op == OP_lstm_kept && n->op == OP_lstm) ||
           (lowered->op == OP_gru_kept && n->op == OP_gru);
}

/* Whether a launch is a call of the word of a node, or holds one. */
static bool holds(const Launch *l, const Node *n)
{
    bool found = is_word(l->node, n);
    for (int r = 0; r < l->node->n_regions; r++)
        for (Node *i = walk_first(l->node->regions[r]); i && !found; i = walk_next(l->node->regions[r], i))
            found = i->op == n->op;
    return found;
}

/* What was opened is there as other words, and what became one with another node as that one's. */
static void check_named(Case *k, const LaunchMap *m, int launch, const Node *n)
{
    const Launch *l = &m->low.program->launches[launch];
    HOLDS(k, computes(n), "launch %d names what computes nothing\n", launch);
    HOLDS(k, is_in(launch, launch_map_node(m, n)), "a node of launch %d does not know it\n", launch);
    if (launch_map_node(m, n)->one || op_of(n)->expand || op_of(n)->open)
        return;
    HOLDS(k, holds(l, n), "launch %d, %s, is said to compute %s\n", launch, launch_kind(l), op_of(n)->name);
    held++;
}

static void check_launches(Case *k, const LaunchMap *m)
{
    for (int i = 0; i < m->low.program->n_launches; i++) {
        const LaunchNodes *nodes = &m->list[i];
        launches++;
        ours += nodes->n == 0;
        for (int j = 0; j < nodes->n; j++) {
            HOLDS(k, j == 0 || nodes->nodes[j] != nodes->nodes[j - 1], "launch %d names a node twice\n", i);
            check_named(k, m, i, nodes->nodes[j]);
        }
    }
}

static void check_node(Case *k, const LaunchMap *m, const Node *n)
{
    const NodeLaunches *l = launch_map_node(m, n);
    const Program *p = m->low.program;
    if (!computes(n)) {
        HOLDS(k, l->run == RUN_NOTHING && l->n == 0, "%s runs\n", op_of(n)->name);
        return;
    }
    HOLDS(k, (l->run == RUN_LAUNCHED) == (l->n > 0), "%s has %d launches\n", op_of(n)->name, l->n);
    HOLDS(k, l->n > 0 || node_run_text(l->run), "%s has neither a launch nor a reason\n", op_of(n)->name);
    HOLDS(k, l->n == 0 || is_in(l->main, l), "%s is made in another launch\n", op_of(n)->name);
    HOLDS(k, !l->one || (l->one != n && is_in(l->launches[0], launch_map_node(m, l->one))),
          "%s is one with what runs elsewhere\n", op_of(n)->name);
    for (int i = 0; i < l->n; i++)
        HOLDS(k, l->launches[i] < p->n_launches && (i == 0 || l->launches[i - 1] < l->launches[i]),
              "%s: its launches are in no order\n", op_of(n)->name);
    launched += l->n > 0;
    idle += l->n == 0;
    joined += l->one != NULL;
    opened += l->n > 1;
    on_both_sides += l->n > 1 && p->launches[l->launches[0]].part == STEP_FORWARD &&
                     p->launches[l->launches[l->n - 1]].part == STEP_BACKWARD;
}

/* Which way memory is saved says how often a node runs. */
static void check_graph(Case *k, Graph *g, Remat remat)
{
    Arena *arena = &k->s->c.arena;
    const Lowering how = { .remat = remat };
    const Lowered plain = lower_graph_for(g, NULL, &how, arena);
    const LaunchMap m = launch_map(g, &how, arena);
    Text a, b;
    HOLDS(k, !plain.program == !m.low.program, "@%s: it has a program only where nobody follows its nodes\n", g->name);
    if (!plain.program)
        return;
    text_open(&a, arena);
    text_open(&b, arena);
    program_print(&a, plain.program, g->ir->ops, true);
    program_print(&b, m.low.program, g->ir->ops, true);
    HOLDS(k, a.n == b.n && memcmp(a.p, b.p, a.n) == 0, "@%s: following its nodes changes its program\n", g->name);
    graphs++;
    check_launches(k, &m);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        check_node(k, &m, n);
}

static Status check_graphs(void *thing)
{
    Case *k = thing;
    for (size_t i = 0; i < k->step->module->n_graphs; i++)
        for (int remat = REMAT_NONE; remat < REMATS; remat += REMATS / 2)
            check_graph(k, k->step->module->graphs[i], (Remat)remat);
    return OK;
}

static Status visit(void *stored)
{
    Case k = { .s = stored };
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = stored };
    const qcc_source source = qcc_file(k.s->path);
    MUST(&k, qcc_open(&options, &k.cx));
    if (qcc_read(k.cx, &source, NULL, &k.model) == QCC_OK &&
        qcc_compile(k.model, "--optimizer adamw --lr 1e-3 --batch 2", &k.step) == QCC_OK)
        TRY(guarded(k.step->module->ir->memory, check_graphs, &k));
    qcc_close(k.cx);
    return OK;
}

static void stored_models(void **state)
{
    static const char *const patterns[] = { "/tests/data/exports/*.onnx", "/tests/data/pytorch/*.onnx",
                                            "/tests/data/torch/*.onnx" };
    size_t seen = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(patterns); i++)
        assert_int_equal(stored_each(patterns[i], NULL, NULL, visit, &seen), 0);
    printf("%zu models, %d graphs, %d launches, %d of them made by passes, %d times a node was found in one\n", seen,
           (int)graphs, (int)launches, (int)ours, (int)held);
    printf("%d nodes launched, %d idle, %d one with another, %d in several launches, %d on both sides\n", (int)launched,
           (int)idle, (int)joined, (int)opened, (int)on_both_sides);
    assert_true(seen > 100 && graphs > 200 && launches > 5000 && ours < launches / 50 && held > 10000);
    assert_true(launched > 5000 && idle > 1000 && joined > 200 && opened > 200 && on_both_sides > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
