#include "passes/pipelines.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "passes/engine/pattern.h"
#include "passes/engine/trial.h"

#define PASS(name) extern const Pass pass_##name;
#include "passes/passes.def"
#undef PASS

/* What a reader of graphs wants: constants folded, nothing twice, nothing idle.  Params stay params. */
/* clang-format off */
static const Pass *const clean[] = {
    &pass_propagate_shapes,
    &pass_sink_constants,
    &pass_fold_constants,
    &pass_inline_branches,
    &pass_fold_constants,
    &pass_open_sequences,
    &pass_fold_constants,
    &pass_simplify,
    &pass_fold_casts,
    &pass_merge_equals,
    &pass_simplify,
    &pass_drop_dead,
};

/* The same for a graph that nobody will train. */
static const Pass *const freeze[] = {
    &pass_params_to_const,
    &pass_propagate_shapes,
    &pass_sink_constants,
    &pass_fold_constants,
    &pass_inline_branches,
    &pass_fold_constants,
    &pass_open_sequences,
    &pass_fold_constants,
    &pass_simplify,
    &pass_fold_casts,
    &pass_merge_equals,
    &pass_simplify,
    &pass_drop_dead,
};
/* A model that is to be trained: its parameters are chosen, the rest is folded. */
#define CHOSEN_MODEL                                                                                                   \
    &pass_open_sequences, /* weights are cut by them too */                                                            \
        &pass_open_codes, &pass_choose_trainable, &pass_propagate_shapes, &pass_pin_types
#define TRAINING_FORM                                                                                                  \
    &pass_enter_training, /* before simplify takes dropouts that do nothing out */                                     \
        &pass_sink_constants, &pass_fold_constants, &pass_inline_branches, &pass_fold_constants, &pass_unroll_loops,   \
        &pass_open_sequences, &pass_fold_constants, &pass_simplify, &pass_raise_patterns
#define TIDIED &pass_fold_casts, &pass_merge_equals, &pass_simplify, &pass_drop_dead

static const Pass *const train_model[] = { CHOSEN_MODEL, TRAINING_FORM, &pass_raise_attention, TIDIED };

/* The same with quantizers: norms are part of the products before them, and those of attention are seen one by one. */
static const Pass *const quant_model[] = {
    CHOSEN_MODEL,
    &pass_sink_constants,
    &pass_fold_constants, /* an exporter may compute the biases of convolutions */
    &pass_fold_norms,
    TRAINING_FORM,
    TIDIED,
    &pass_open_swish, &pass_place_quant, &pass_merge_equals, &pass_drop_dead,
};

/* The end of it, for another copy of the model: of steps that leave data as floats. */
static const Pass *const quant_places[] = { &pass_place_quant, &pass_merge_equals, &pass_drop_dead };

/* The model with observers alone, as it is deployed otherwise: what is run before there are scales. */
static const Pass *const observe_step[] = {
    &pass_enter_inference,
    &pass_only_observe,
    &pass_strip_quant,
    &pass_simplify,
    &pass_drop_dead,
};

/* The quantized model as it is deployed, and what each of its quantizers does to the loss. */
static const Pass *const sensitivity[] = {
    &pass_enter_inference,
    &pass_stop_observing,
    &pass_simplify,
    &pass_drop_dead,
    &pass_weigh_quantizers,
    &pass_attach_loss,
    &pass_require_shapes,
    &pass_differentiate,
    &pass_fold_constants,
    &pass_simplify,
    &pass_merge_equals,
    &pass_drop_dead,
};

/* The quantized model as others run it: what depends on weights alone is computed. */
static const Pass *const deploy_model[] = {
    &pass_enter_inference,
    &pass_stop_observing,
    &pass_gather_codes,
    &pass_deploy_quant,
    &pass_freeze_states,
    &pass_propagate_shapes,
    &pass_fold_constants,
    &pass_simplify,
    &pass_fold_constants,
    &pass_open_ranges,
    &pass_merge_equals,
    &pass_drop_dead,
    &pass_own_zeros,
    &pass_store_constants,
};

/* And for those who read operators of codes instead of pairs around operators of floats; or nothing but integers. */
static const Pass *const spell_operators[] = {
    &pass_take_integers,  &pass_drop_dead,    &pass_spell_operators,
    &pass_fold_constants, &pass_merge_equals, &pass_drop_dead,
};
static const Pass *const spell_fixed[] = {
    &pass_take_integers, &pass_drop_dead, &pass_spell_fixed,      &pass_fold_constants,
    &pass_merge_equals,  &pass_drop_dead, &pass_require_integers,
};

/* The whole step behind it. */
static const Pass *const train_step[] = {
    &pass_attach_loss,
    &pass_attach_teacher,
    &pass_attach_budget,
    &pass_require_shapes,
    &pass_train_norms,
    &pass_learn_scales,
    &pass_drop_dead, /* what the first values were computed with */
    &pass_train_integers,
    &pass_drop_dead,
    &pass_insert_amp,
    &pass_differentiate,
    &pass_scale_loss, /* at once: folded, the seed would be gone */
    &pass_insert_amp, /* of what is new */
    &pass_fold_casts,
    &pass_fold_constants,
    &pass_simplify,
    &pass_merge_equals,
    &pass_simplify,
    &pass_quantize_products,
    &pass_store_weights, /* gradients are those of numbers */
    &pass_merge_equals,
    &pass_keep_bits,
    &pass_keep_codes,
    &pass_lift_casts,
    &pass_drop_dead,
    &pass_accumulate,
    &pass_clip,
    &pass_update,
    &pass_ema,
    &pass_shadow,
    &pass_fold_constants,
    &pass_merge_equals,
    &pass_drop_dead,
};

/* The model as it is deployed, with its loss. */
static const Pass *const eval_step[] = {
    &pass_enter_inference,
    &pass_stop_observing,
    &pass_attach_loss,
    &pass_simplify,
    &pass_drop_dead,
    &pass_store_weights,
    &pass_merge_equals,
    &pass_take_integers,
    &pass_drop_dead,
};

/* Towards what an engine runs, bit for bit: calls are opened and look at what is there, and come together again. */
#define OPENED                                                                                                         \
    &pass_expand, &pass_join_moves, &pass_absorb_transposes, &pass_read_codes, &pass_bound_picks, &pass_advance_loss,                      \
        &pass_merge_equals, &pass_merge_sides, &pass_drop_dead
#define SMALLER &pass_chunk_loss, &pass_drop_dead, &pass_rematerialise, &pass_drop_dead
#define FUSED   &pass_grow_fusion, &pass_drop_dead, &pass_order_nodes

static const Pass *const lower[] = { OPENED, &pass_keep_gates, FUSED };

/* The same where memory counts more than time. */
static const Pass *const lower_small[] = { OPENED, SMALLER, FUSED };

/* Blocks of the forward side are made again. */
static const Pass *const lower_blocks[] = { OPENED, SMALLER, &pass_rematerialise_blocks, &pass_drop_dead, FUSED };

/* And so are the borders of most of them. */
static const Pass *const lower_least[] = { OPENED, SMALLER, &pass_rematerialise_segments, &pass_drop_dead, FUSED };

/* A graph whose inputs were given types: what follows from them, as far as it must be known to plan it; and what no place
 * in memory can hold, sequences and branches whose way is known, as the numbers in it. */
static const Pass *const shapes[] = {
    &pass_params_to_const,
    &pass_propagate_shapes,
    &pass_sink_constants,
    &pass_fold_constants,
    &pass_inline_branches,
    &pass_unroll_loops,
    &pass_open_sequences,
    &pass_fold_constants,
    &pass_propagate_shapes,
    &pass_drop_dead,
};

/* A graph without a backward side, which nobody looks into while it runs. */
static const Pass *const serve[] = { &pass_raise_seen_attention, &pass_drop_dead };
/* clang-format on */

const Pipeline all_pipelines[] = {
    { "clean", TYPED, clean, COUNT(clean), false },
    { "freeze", TYPED, freeze, COUNT(freeze), false },
    { "train-model", TYPED, train_model, COUNT(train_model), false },
    { "quant-model", TYPED, quant_model, COUNT(quant_model), false },
    { "quant-places", TYPED, quant_places, COUNT(quant_places), false },
    { "observe-step", TYPED | CHOSEN, observe_step, COUNT(observe_step), false },
    { "deploy-model", TYPED | CHOSEN, deploy_model, COUNT(deploy_model), false },
    { "spell-operators", TYPED, spell_operators, COUNT(spell_operators), false },
    { "spell-fixed", TYPED, spell_fixed, COUNT(spell_fixed), false },
    { "sensitivity", TYPED | CHOSEN, sensitivity, COUNT(sensitivity), false },
    { "train-step", TYPED | CHOSEN, train_step, COUNT(train_step), false },
    { "eval-step", TYPED | CHOSEN, eval_step, COUNT(eval_step), false },
    { "lower", TYPED, lower, COUNT(lower), true },
    { "lower-small", TYPED, lower_small, COUNT(lower_small), true },
    { "lower-blocks", TYPED, lower_blocks, COUNT(lower_blocks), true },
    { "lower-least", TYPED, lower_least, COUNT(lower_least), true },
    { "shapes", TYPED, shapes, COUNT(shapes), false },
    { "serve", TYPED, serve, COUNT(serve), false },
};

const size_t n_all_pipelines = COUNT(all_pipelines);

const Pipeline *pipeline_find(const char *name)
{
    for (size_t i = 0; i < n_all_pipelines; i++)
        if (strcmp(all_pipelines[i].name, name) == 0)
            return &all_pipelines[i];
    return NULL;
}

/* ---- the proof ---- */

static const Pass *last_breaker(const Pipeline *p, size_t before, FactSet fact)
{
    for (size_t i = before; i-- > 0;)
        if (p->passes[i]->breaks & fact)
            return p->passes[i];
    return NULL;
}

Status pipeline_check(const Pipeline *p, Diag *diag)
{
    FactSet have = p->given;
    for (size_t i = 0; i < p->n; i++) {
        const Pass *pass = p->passes[i];
        for (int f = 0; f < FACT_COUNT; f++) {
            const FactSet fact = 1u << f;
            if (!(pass->needs & fact) || have & fact)
                continue;
            const Pass *breaker = last_breaker(p, i, fact);
            if (breaker)
                return fail(diag, NOWHERE, "pipeline %s: %s needs %s, which %s breaks", p->name, pass->name,
                            fact_name((FactBit)f), breaker->name);
            return fail(diag, NOWHERE, "pipeline %s: %s needs %s, which nothing before it makes", p->name, pass->name,
                        fact_name((FactBit)f));
        }
        have = (have & ~pass->breaks) | pass->makes;
    }
    return OK;
}

/* ---- after each pass ---- */

typedef struct Stage {
    const Pipeline *pipeline;
    const PipelineOptions *options;
    const Pass *pass;
    Graph *graph;
    Graph *before; /* a copy, when values are compared */
    Exactness may; /* what was done to values */
    Arena scratch;
} Stage;

static Status blame(Stage *s, const char *what, const char *more)
{
    return fail_as(s->graph->ir->diag, INTERNAL, NOWHERE, "after %s: %s%s", s->pass->name, what, more);
}

/* Parsing what was printed and printing that gives the same text. */
static Status check_text(Stage *s)
{
    Text once, twice;
    Module *m = NULL;
    text_open(&once, &s->scratch);
    text_open(&twice, &s->scratch);
    TRY(print_graph(&once, s->graph, NULL));
    const Str text = { text_get(&once), once.n };
    if (parse_module(s->graph->ir, &s->scratch, text, s->pass->name, NULL, NULL, &m) != OK)
        return blame(s, "its text cannot be read back", "");
    TRY(print_graph(&twice, m->graphs[0], NULL));
    if (strcmp(text_get(&once), text_get(&twice)) != 0)
        return blame(s, "its text reads back as another graph:\n", text_get(&twice));
    return OK;
}

static Status check_values(Stage *s)
{
    for (uint64_t k = 0; k < 3; k++) {
        bool ran;
        const char *difference = trial_compare(s->before, s->graph, s->may, s->options->seed + k, &s->scratch, &ran);
        if (difference)
            return blame(s, "the values changed: ", difference);
    }
    return OK;
}

static Status check_facts(Stage *s)
{
    if (facts_check(s->pass->makes, s->graph) != OK)
        return blame(s, "a fact that it makes does not hold", "");
    return OK;
}

#ifdef QCC_DEBUG
enum { always_check_facts = true };
#else
enum { always_check_facts = false };
#endif

static Status check_stage(Stage *s)
{
    if (s->options->verify_each == VERIFY_NOTHING)
        return always_check_facts ? check_facts(s) : OK;
    if (verify(s->graph, NULL) != OK)
        return blame(s, "the graph is no longer one", "");
    TRY(check_facts(s));
    TRY(check_text(s));
    return s->before ? check_values(s) : OK;
}

/* ---- the run ---- */

static bool is_named(const char *wanted, const Pass *pass)
{
    return wanted && (strcmp(wanted, "all") == 0 || pass_find(wanted) == pass);
}

static Status print_stage(Stage *s)
{
    Text text;
    if (!s->options->print || !is_named(s->options->print_after, s->pass))
        return OK;
    text_open(&text, &s->scratch);
    TRY(print_graph(&text, s->graph, NULL));
    s->options->print(s->options->user, s->pass->name, text_get(&text));
    return OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The loosest rule that was applied; of other passes, what they may do. */
static Exactness loosest(const PassRun *run)
{
    const Pass *pass = run->pass;
    Exactness may = run->applied ? EXACT : pass->may;
    for (size_t i = 0; run->applied && i < pass->n_rules; i++)
        if (run->applied[i] && pass->rules[i].exactness > may)
            may = pass->rules[i].exactness;
    return may;
}

static Status run_stage(Stage *s, int64_t *left)
{
    Graph *g = s->graph;
    PassRun run = { .pass = s->pass, .options = &s->options->pass, .diag = g->ir->diag, .allowed = -1 };
    const bool counts = s->options->report; /* a walk over all nodes: only for who listens */
    PassReport report = { .pass = s->pass, .before = counts ? graph_count(g) : 0 };
    if (*left == 0)
        return OK;
    run.allowed = s->pass->run ? -1 : *left;
    run.applied = s->pass->n_rules ? NEWS(&s->scratch, int64_t, s->pass->n_rules) : NULL;
    if (s->options->verify_each == VERIFY_VALUES && !s->pass->rebinds)
        s->before = graph_copy(g, &s->scratch);
    const double start = now();
    TRY(pass_run(s->pass, g, &run));
    report.seconds = now() - start;
    s->may = loosest(&run);
    report.changes = run.changes;
    report.applied = run.applied;
    report.after = counts ? graph_count(g) : 0;
    if (*left > 0)
        *left = s->pass->run ? *left - 1 : run.allowed;
    if (counts)
        s->options->report(s->options->user, &report);
    TRY(print_stage(s));
    return check_stage(s);
}

static Status run_passes(const Pipeline *p, Graph *g, const PipelineOptions *o, int64_t *left)
{
    for (size_t i = 0; i < p->n; i++) {
        Stage s = { .pipeline = p, .options = o, .pass = p->passes[i], .graph = g };
        arena_open(&s.scratch, g->ir->memory);
        const Status status = run_stage(&s, left);
        arena_close(&s.scratch);
        TRY(status);
        if (o->stop_after && pass_find(o->stop_after) == p->passes[i])
            break;
    }
    return OK;
}

/* Bodies are no graphs by themselves: what is proved is proved of the graph around them. */
static Status run_on_bodies(const Pipeline *p, Graph *g, const PipelineOptions *o, int64_t *left)
{
    if (!p->bodies)
        return OK;
    PipelineOptions inside = *o;
    bool any = false;
    inside.verify_each = VERIFY_NOTHING;
    inside.print = NULL;
    for (Node *n = g->first; n; n = n->next) {
        CountedTurns turns;
        const BodyCard *card = &op_of(n)->body;
        if (!card->counted || !card->counted(n, &turns))
            continue;
        TRY(run_passes(p, n->regions[0], &inside, left));
        any = true;
    }
    return any && o->verify_each != VERIFY_NOTHING ? verify(g, NULL) : OK;
}

static const PipelineOptions defaults = { .pass_limit = 0 };

Status pipeline_run_bodies(const Pipeline *p, Graph *g, const PipelineOptions *options)
{
    int64_t left = -1;
    return run_on_bodies(p, g, options ? options : &defaults, &left);
}

Status pipeline_run(const Pipeline *p, Graph *g, const PipelineOptions *options)
{
    const PipelineOptions *o = options ? options : &defaults;
    int64_t left = o->pass_limit ? o->pass_limit : -1;
    TRY(pipeline_check(p, g->ir->diag));
    TRY(run_passes(p, g, o, &left));
    return run_on_bodies(p, g, o, &left);
}

Status pipeline_run_module(const Pipeline *p, Module *m, const PipelineOptions *options)
{
    for (size_t i = 0; i < m->n_graphs; i++)
        TRY(pipeline_run(p, m->graphs[i], options));
    return OK;
}
