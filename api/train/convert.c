/* --convert: a checkpoint of a step whose states are of other widths.  That step is compiled once more by the options
 * that the checkpoint notes, so that nothing about its codes has to be guessed; it must be this step but for widths. */
#include <string.h>

#include "api/hall/quiet.h"
#include "api/session/convert_states.h"
#include "api/train/train.h"
#include "base/bytes.h"
#include "passes/recipe/groups.h"
#include "passes/recipe/optimizer_read.h"
#include "runtime/checkpoint/option_words.h"

/* ---- the step that was ---- */

static Status compile(Trainer *t, const char *options, qcc_step **old)
{
    CommandLine line;
    TRY(options_read_text(t->d, &t->cx->scratch, "options of the checkpoint", options, TEXT_COMPILES, &line));
    return step_compile(t->step->model, &line, old);
}

static Status compile_old(Trainer *t, const CheckpointLoaded *of, qcc_step **old)
{
    Quiet quiet; /* what it had to say it said when it was compiled; only why it cannot be any more is new */
    quiet_begin(&quiet, &t->cx->memory, t->d);
    const Status status = compile(t, of->info.options, old);
    quiet_end(&quiet);
    if (status == OK || !quiet.first)
        return status;
    Message *m = message_new(t->d, SEVERITY_ERROR, status, (Place){ .file = of->file, .byte = -1 },
                             "--convert: the step that saved it cannot be made again: %s", quiet.first->text);
    message_at(m, "it was compiled with %s", of->info.options);
    for (size_t i = 0; i < quiet.first->n_at; i++)
        message_at(m, "%s", quiet.first->at[i]);
    message_try(m, "--init %s to take the weights alone, which needs no other step", of->file);
    return message_send(m);
}

/* ---- what else differs ---- */

static bool is_option(Str one, Option o)
{
    const char *name = option_specs[o].name;
    const size_t n = strlen(name);
    return one.n >= n && memcmp(one.p, name, n) == 0 && (one.n == n || one.p[n] == ' ' || one.p[n] == '=');
}

/* An identity without the options that say widths, which are compared by what they mean. */
static const char *without_widths(Arena *arena, const char *identity, bool weights)
{
    Text t;
    text_open(&t, arena);
    for (Str one; (one = option_words_next(&identity)).n;)
        if (!is_option(one, OPT_optimizer) && !is_option(one, OPT_group) &&
            !(weights && (is_option(one, OPT_quant) || is_option(one, OPT_quant_op))))
            text_printf(&t, " %.*s", STR_ARG(one));
    return t.n ? text_get(&t) : "";
}

/* How a parameter is trained, but for rate and widths. */
static const char *training_of(const qcc_step *s, Arena *arena, const Node *x)
{
    OptimizerGroup g = *recipe_group(&s->recipe, x);
    g.lr = 0;
    g.states = STATES_F32;
    g.states_min = 0;
    return arena_printf(arena, "%s %d %d", optimizer_text(arena, s->ir->ops, &g), g.spares_vectors, g.says_decay);
}

static bool trains_alike(const qcc_step *a, const qcc_step *b, Arena *arena)
{
    const Graph *g = module_graph(a->module, "step"), *h = module_graph(b->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *x = g->inputs[i], *y = NULL;
        for (size_t k = 0; k < h->n_inputs && !y && is_model_state(x) && x->flags & NODE_TRAINED; k++)
            if (is_model_state(h->inputs[k]) && strcmp(h->inputs[k]->name, x->name) == 0)
                y = h->inputs[k];
        if (y && strcmp(training_of(a, arena, x), training_of(b, arena, y)) != 0)
            return false;
    }
    return true;
}

static Status check_rest(Trainer *t, const qcc_step *old, const CheckpointLoaded *of)
{
    Arena *arena = &t->cx->scratch;
    const bool weights = t->o.convert_weights;
    if (strcmp(without_widths(arena, old->facts.identity, weights),
               without_widths(arena, t->step->facts.identity, weights)) == 0 &&
        trains_alike(old, t->step, arena))
        return OK;
    const char *lacking = options_without(arena, of->info.options, t->info.options);
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, (Place){ .file = of->file, .byte = -1 },
                             "--convert %s: was saved by a step that differs in more than that",
                             option_text(&t->c->line, OPT_convert));
    message_at(m, "then  %s", of->info.options);
    message_at(m, "now   %s", t->info.options);
    message_try(m, "with %s, changed in its widths alone", *lacking ? lacking : of->info.options);
    return message_send(m);
}

/* ---- its states ---- */

/* Scales of a loss that this step has no place for are kept, as checkpoint_load keeps them. */
static void keep_rest(const Conversion *c, CheckpointLoaded *loaded)
{
    Arena *arena = &c->to->cx->scratch;
    NamedTensor *kept = NEWS(arena, NamedTensor, loaded->n_kept + c->n_have + 1);
    if (loaded->n_kept)
        memcpy(kept, loaded->kept, loaded->n_kept * sizeof *kept);
    loaded->kept = kept;
    for (size_t i = 0; i < c->n_have; i++)
        if (c->old[i])
            kept[loaded->n_kept++] = (NamedTensor){ arena_string(arena, c->have[i].name), c->old[i] };
    for (size_t i = 0; i < loaded->n_kept; i++) {
        const Tensor *old = kept[i].tensor;
        const Type *type = type_tensor(&c->to->ir->types, old->type->dtype, old->type->rank, old->type->dims);
        Tensor *own = tensor_alloc(c->heap, type);
        bytes_copy(own->data, old->data, own->bytes);
        kept[i].tensor = own;
    }
}

static Status take(Trainer *t, qcc_session *then, Conversion *c, CheckpointLoaded *loaded)
{
    Arena *arena = &t->cx->scratch;
    CheckpointInfo own = { 0 };
    const State *states = session_states(then->run, &c->n_have);
    StateSlot *have = NEWS(arena, StateSlot, c->n_have + 1);
    for (size_t i = 0; i < c->n_have; i++)
        have[i] = session_slot(c->from, &states[i]);
    session_identify(then, &own);
    const CheckpointReader r = { &c->from->ir->types, c->heap, arena, t->d, &t->cx->limits };
    const CheckpointWanted wanted = { .model_hash = own.model_hash,
                                      .step_hash = own.step_hash,
                                      .options = c->from->facts.options,
                                      .slots = have,
                                      .n = c->n_have,
                                      .fresh_scale = t->step->recipe.precision.scale.fresh };
    TRY(checkpoint_load(&r, c->file, &wanted, loaded));
    c->have = have;
    c->old = loaded->states;
    c->made = NEWS(arena, Tensor *, c->n_want + 1);
    TRY(convert_states(c));
    keep_rest(c, loaded);
    loaded->states = c->made;
    return OK;
}

static void note(Trainer *t, const Conversion *c)
{
    if (!t->notes_open)
        text_open(&t->notes, &t->step->arena);
    t->notes_open = true;
    if (c->n_changes)
        text_printf(&t->notes, "converted: %s\n", convert_text(&t->cx->scratch, c));
    else
        text_printf(&t->notes, "converted: nothing, all widths are the same\n");
}

static Status convert(Trainer *t, Conversion *c, qcc_step *old, CheckpointLoaded *loaded)
{
    qcc_session *then;
    TRY(check_rest(t, old, loaded));
    TRY(session_start(old, t->o.seed, &t->cx->hurry, &then));
    c->from = old;
    c->file = loaded->file;
    const Status status = take(t, then, c, loaded);
    session_end(then);
    TRY(status);
    note(t, c);
    return OK;
}

Status train_convert(Trainer *t, Heap *heap, const StateSlot *slots, size_t n, CheckpointLoaded *loaded, bool *other)
{
    qcc_step *old;
    const CheckpointReader r = { &t->step->ir->types, heap, &t->cx->scratch, t->d, &t->cx->limits };
    const CheckpointWanted nothing = { .others = true };
    Conversion c = { .to = t->step,
                     .want = slots,
                     .n_want = n,
                     .states = t->o.convert_states,
                     .weights = t->o.convert_weights,
                     .heap = heap };
    *other = false;
    if (model_is_step(t->step->model)) {
        Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                                 "--convert: the widths of a step that was compiled before stay as they are");
        message_try(m, "qcc train MODEL with the options of the step, MODEL being what it was compiled from");
        return message_send(m);
    }
    TRY(checkpoint_load(&r, t->folder, &nothing, loaded));
    const CheckpointInfo *then = &loaded->info;
    const bool same = loaded->file && then->step_hash && then->model_hash &&
                      strcmp(then->step_hash, t->info.step_hash) == 0 &&
                      strcmp(then->model_hash, t->info.model_hash) == 0;
    if (!loaded->file || !then->options || same)
        return OK;
    TRY(compile_old(t, loaded, &old));
    const Status status = convert(t, &c, old, loaded);
    step_close(old);
    *other = true;
    return status;
}
