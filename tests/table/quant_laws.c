/* What holds of every graph that is quantized: what is taken out again leaves the graph that there was, the second time
 * changes nothing, the order of nodes says nothing, and mixed precision goes in and out of it as it does without. */
#include "support/amp_trial.h"

#include "base/rng.h"
#include "ir/role.h"
#include "ir/verify.h"
#include "passes/engine/pass.h"
#include "passes/recipe/quantizer.h"
#include "support/seed.h"

static const struct Way {
    const char *spec, *target;
} ways[] = {
    { "w8a8", "ort" },
    { "w8a8", "generic" },
    { "w8a8", "trt" },
    { "w4a4", "generic" },
    { "w8a8,a=int8:const=0.5,w=int8:tensor:const=0.25", "ort" },
    { "w8", "generic" },
};

static const AmpWay bf16 = { BF16, false };

/* Runs a pass for a way; null or what is wrong.  What a way cannot quantize at all it refuses, which is `refused`. */
static const char *run(AmpTrial *t, Graph *g, const char *pass, const struct Way *w, bool *refused)
{
    QuantSpec spec;
    Context *c = t->c;
    c->last = NULL;
    if (quantizer_read(&spec, "--quant", w->spec, w->target, &c->arena, &c->diag) != OK)
        return c->last;
    const Recipe recipe = { .quantization = { .spec = &spec, .target = w->target } };
    const PassOptions options = { .recipe = &recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    const Status status = pass_run(pass_find(pass), g, &run);
    if (refused && status == UNSUPPORTED) {
        *refused = true;
        return NULL;
    }
    if (status != OK)
        return arena_printf(&c->arena, "%s for %s: %s fails: %s", w->spec, w->target, pass, c->last);
    Module *m = module_new(&c->ir, &c->arena);
    module_add(m, g);
    if (verify_module(m, NULL) != OK)
        return arena_printf(&c->arena, "%s for %s: no graph after %s: %s\n%s", w->spec, w->target, pass, c->last,
                            amp_text(t, g));
    return NULL;
}

/* States that only quantizers remembered something in, which nobody reads any more. */
static void forget_states(Graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op != OP_state || g->inputs[i]->uses || strncmp(g->inputs[i]->name, "qcc.", 4) != 0)
            g->inputs[n++] = g->inputs[i];
    g->n_inputs = n;
}

static const char *strip(AmpTrial *t, Graph *g, const struct Way *w)
{
    static const char *const passes[] = { "strip-quant", "stop-observing", "drop-dead" };
    const char *wrong = NULL;
    for (size_t i = 0; i < COUNT(passes) && !wrong; i++)
        wrong = run(t, g, passes[i], w, NULL);
    forget_states(g);
    return wrong;
}

static const char *differs(const AmpTrial *t, const struct Way *w, const char *what, const char *want, const char *got)
{
    const char *how = amp_differs(t, bf16, what, want, got);
    return how ? arena_printf(&t->c->arena, "%s for %s: %s", w->spec, w->target, how) : NULL;
}

/* Whether a graph is a step, or has quantizers, already: it counts steps or remembers ranges of its own. */
static bool is_made_already(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_state(g->inputs[i], STATE_counter) || is_state(g->inputs[i], STATE_quant))
            return true;
    return false;
}

/* The graph without what nobody reads, and the same with quantizers; null in *placed: it is refused, or has some. */
static const char *place(AmpTrial *t, const struct Way *w, Graph **bare, Graph **placed)
{
    bool refused = false;
    *bare = graph_copy(t->graph, &t->c->arena);
    const char *wrong = run(t, *bare, "drop-dead", w, NULL);
    forget_states(*bare);
    *bare = graph_copy(*bare, &t->c->arena); /* ids without gaps */
    *placed = graph_copy(*bare, &t->c->arena);
    if (!wrong)
        wrong = run(t, *placed, "place-quant", w, &refused);
    if (refused || is_made_already(t->graph))
        *placed = NULL;
    return wrong;
}

/* ---- taken out, and placed twice ---- */

static size_t n_placed;

static const char *check_way(AmpTrial *t, const struct Way *w)
{
    Graph *bare, *placed;
    const char *wrong = place(t, w, &bare, &placed);
    if (wrong || !placed)
        return wrong;
    const char *text = amp_text(t, bare), *once = amp_text(t, placed);
    n_placed += strcmp(text, once) != 0;
    Graph *again = graph_copy(placed, &t->c->arena);
    wrong = run(t, again, "place-quant", w, NULL);
    if (!wrong)
        wrong = differs(t, w, "the second time", once, amp_text(t, again));
    if (!wrong)
        wrong = strip(t, placed, w);
    return wrong ? wrong : differs(t, w, "stripped", text, amp_text(t, placed));
}

static const char *check_ways(AmpTrial *t)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < COUNT(ways) && !wrong; i++)
        wrong = check_way(t, &ways[i]);
    return wrong;
}

/* ---- in any order of nodes ---- */

static bool is_ready(const Node *n, const bool *placed)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        if (def && def->graph == n->graph && def->op != OP_input && def->op != OP_state && !placed[def->id])
            return false;
    }
    return true;
}

/* Deals the nodes of a graph anew, each behind what it reads. */
static void shuffle(const AmpTrial *t, Graph *g, Rng *rng)
{
    bool *placed = NEWS(&t->c->arena, bool, g->n_ids + 1);
    size_t n = 0;
    Node **left = NEWS(&t->c->arena, Node *, graph_count(g) + 1);
    for (Node *k = g->first; k; k = k->next)
        left[n++] = k;
    while (n) {
        size_t i = (size_t)rng_below(rng, (int64_t)n);
        while (!is_ready(left[i], placed))
            i = i + 1 < n ? i + 1 : 0;
        placed[left[i]->id] = true;
        node_move(left[i], NULL);
        left[i] = left[--n];
    }
}

/* What stands at an operand: the value itself, or how it was quantized. */
static const char *operand(const AmpTrial *t, const Node *n, uint32_t n_ids)
{
    const Node *codes = n && op_of(n)->quant.dequantizes ? in(n, 0) : NULL;
    if (!n || n->id < n_ids)
        return arena_printf(&t->c->arena, "%u", n ? n->id + 1 : 0);
    if (!codes || !op_of(codes)->quant.quantizes || !in(codes, 0))
        return "made";
    Text text;
    text_open(&text, &t->c->arena);
    text_printf(&text, "%u as %s", in(codes, 0)->id + 1, dtype_name(codes->type->dtype));
    return text_get(&text);
}

static const char *check_order_way(AmpTrial *t, const struct Way *w)
{
    Graph *bare, *g[2];
    const char *wrong = place(t, w, &bare, &g[0]);
    if (wrong || !g[0])
        return wrong;
    Rng rng = { seed_of(t->name, (uint64_t)(w - ways)) };
    g[1] = graph_copy(bare, &t->c->arena);
    const uint32_t n_ids = bare->n_ids;
    shuffle(t, g[1], &rng);
    wrong = run(t, g[1], "place-quant", w, NULL);
    if (wrong)
        return wrong;
    const Node **by_id = NEWS(&t->c->arena, const Node *, n_ids + 1);
    size_t count[2] = { 0 };
    for (const Node *n = g[0]->first; n; n = n->next, count[0]++)
        if (n->id < n_ids)
            by_id[n->id] = n;
    for (const Node *n = g[1]->first; n; n = n->next, count[1]++)
        for (int i = 0; n->id < n_ids && i < n->n_in; i++) {
            const char *want = operand(t, in(by_id[n->id], i), n_ids), *got = operand(t, in(n, i), n_ids);
            if (strcmp(want, got) != 0)
                return arena_printf(&t->c->arena, "%s for %s: operand %d of %s is %s, shuffled %s", w->spec, w->target,
                                    i, op_of(n)->name, want, got);
        }
    return count[0] == count[1] ? NULL : "another number of nodes when it is shuffled";
}

static const char *check_order(AmpTrial *t)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < COUNT(ways) && !wrong; i++)
        wrong = check_order_way(t, &ways[i]);
    return wrong;
}

/* ---- with mixed precision ---- */

/* Casts around quantizers go out as they came; and what quantizers leave behind gets the casts of the graph that never had any. */
static const char *check_amp(AmpTrial *t)
{
    const struct Way *w = &ways[0];
    Graph *bare, *placed;
    const char *wrong = place(t, w, &bare, &placed);
    if (wrong || !placed)
        return wrong;
    const char *text = amp_text(t, placed);
    Graph *both = graph_copy(placed, &t->c->arena);
    if (amp_run(t, both, "insert-amp", bf16, NULL))
        return amp_run(t, bare, "insert-amp", bf16, NULL) ? NULL : "insert-amp fails with quantizers alone";
    wrong = amp_run(t, both, "strip-casts", bf16, NULL);
    if (!wrong)
        wrong = differs(t, w, "with casts and without them", text, amp_text(t, both));
    if (!wrong)
        wrong = strip(t, placed, w);
    if (!wrong)
        wrong = amp_run(t, placed, "insert-amp", bf16, NULL);
    if (!wrong)
        wrong = amp_run(t, bare, "insert-amp", bf16, NULL);
    return wrong ? wrong : differs(t, w, "stripped, with casts", amp_text(t, bare), amp_text(t, placed));
}

/* ---- everywhere ---- */

static void hold(AmpCheck *check, int random)
{
    int seen;
    assert_int_equal(amp_check_models(check, &seen), 0);
    assert_true(seen > 200);
    assert_int_equal(amp_check_random(check, random), 0);
}

static void it_goes_out_again_and_stands_once(void **state)
{
    (void)state;
    n_placed = 0;
    hold(check_ways, 60);
    print_message("%zu times something was placed\n", n_placed);
    assert_true(n_placed > 300);
}

static void order_does_not_matter(void **state)
{
    (void)state;
    hold(check_order, 60);
}

static void mixed_precision_goes_with_it(void **state)
{
    (void)state;
    hold(check_amp, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_out_again_and_stands_once),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(mixed_precision_goes_with_it),
    };
    return cmocka_run_group_tests_name("quant_laws", tests, NULL, NULL);
}
