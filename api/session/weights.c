#include "api/session/weights.h"

#include <string.h>

#include "ir/own_names.h"

/* The property of a checkpoint that says which of its weights were judged. */
#define WEIGHTS_PROPERTY "qcc.weights"

WeightsKind weights_said(const CommandLine *line)
{
    const char *word = option_text(line, OPT_weights);
    return !word ? WEIGHTS_UNSAID : strcmp(word, "raw") == 0 ? WEIGHTS_RAW : WEIGHTS_AVERAGED;
}

Status weights_want_states(Diag *d, const CommandLine *line)
{
    if (weights_said(line) == WEIGHTS_UNSAID || option_given(line, OPT_checkpoint) || option_given(line, OPT_init))
        return OK;
    Place place = ON_COMMAND_LINE;
    place.where = option_specs[OPT_weights].name;
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "chooses between weights of a run, and none is named");
    message_try(m, "--checkpoint PATH");
    return message_send(m);
}

static State *average_of(qcc_session *s, const char *name)
{
    return session_state_of(s->run, STATE_ema, name);
}

bool session_has_averages(qcc_session *s)
{
    size_t n;
    const State *states = session_states(s->run, &n);
    for (size_t i = 0; i < n; i++)
        if (states[i].mark.role == STATE_ema)
            return true;
    return false;
}

/* What counts: what was said, else what a checkpoint notes, else the averages. */
static bool wants_averages(WeightsKind said, const char *noted)
{
    return said == WEIGHTS_UNSAID ? !noted || strcmp(noted, "raw") != 0 : said == WEIGHTS_AVERAGED;
}

bool session_is_averaged(qcc_session *s)
{
    return session_has_averages(s) && wants_averages(s->weights, property_get(s, WEIGHTS_PROPERTY));
}

void session_note_weights(qcc_session *s)
{
    if (session_has_averages(s))
        property_set(s, WEIGHTS_PROPERTY, session_is_averaged(s) ? "averaged" : "raw");
}

/* The average that takes the place of a state; null: none does. */
static const State *deployed_average(qcc_session *s, const State *state)
{
    const bool averaged =
        role_is_of_model(state->mark.role) && wants_averages(s->weights, property_get(s, WEIGHTS_PROPERTY));
    return averaged ? average_of(s, state->name) : NULL;
}

Status session_final(qcc_session *s, const State *state, const Tensor **value)
{
    const State *average = deployed_average(s, state);
    *value = NULL;
    return role_is_deployed(state->mark.role) ? session_value(s->run, average ? average : state, value) : OK;
}

Status session_deploy(qcc_session *s)
{
    size_t n;
    const State *states = session_states(s->run, &n);
    for (size_t i = 0; i < n; i++) {
        const State *average = deployed_average(s, &states[i]);
        const Tensor *value;
        if (!average)
            continue;
        TRY(session_value(s->run, average, &value));
        TRY(session_put(s->run, states[i].name, value));
    }
    return OK;
}

Status session_exchange_averages(qcc_session *s)
{
    size_t n;
    const State *states = session_states(s->run, &n);
    for (size_t i = 0; i < n; i++)
        if (states[i].mark.role == STATE_ema)
            TRY(session_exchange(s->run, states[i].name, states[i].mark.of));
    return OK;
}

/* ---- checkpoints ---- */

static const char *noted_in(const CheckpointInfo *info)
{
    for (size_t i = 0; i < info->n_properties; i++)
        if (strcmp(info->properties[i].key, WEIGHTS_PROPERTY) == 0)
            return info->properties[i].value;
    return NULL;
}

/* Every state of the model, and behind these the average of each, which a file may lack. */
static StateSlot *trained_slots(qcc_session *s, size_t *n)
{
    size_t n_states;
    Arena *arena = &s->cx->scratch;
    const State *states = session_states(s->run, &n_states);
    StateSlot *slots = NEWS(arena, StateSlot, 2 * n_states + 1);
    *n = 0;
    for (size_t i = 0; i < n_states; i++)
        if (role_is_deployed(states[i].mark.role))
            slots[(*n)++] = session_slot(s->step, &states[i]);
    for (size_t i = 0; i < *n; i++) {
        const State *own = average_of(s, slots[i].name); /* else under the name that a step with --ema gives it */
        slots[*n + i] = (StateSlot){ .name = own ? own->name : arena_printf(arena, EMA_PREFIX "%s", slots[i].name),
                                     .type = slots[i].type,
                                     .mark = { STATE_ema, slots[i].name },
                                     .may_lack = true };
    }
    return slots;
}

/* Averages that the step keeps itself become the same: whatever is asked of it now is what is deployed. */
static Status put_final(qcc_session *s, const StateSlot *slots, Tensor *const *values, size_t n, bool averaged)
{
    for (size_t i = 0; i < n; i++) {
        const Tensor *value = averaged && values[n + i] ? values[n + i] : values[i];
        if (!value)
            continue;
        TRY(session_put(s->run, slots[i].name, value));
        if (session_view(s->run, slots[n + i].name))
            TRY(session_put(s->run, slots[n + i].name, value));
    }
    return OK;
}

static Status no_averages(qcc_session *s, const char *file)
{
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .file = file, .byte = -1 },
                             "--weights averaged: holds no averages, its run had no --ema");
    message_try(m, "--weights raw");
    return message_send(m);
}

static Status load_final(qcc_session *s, const CheckpointReader *r, const char *path, WeightsKind said,
                         const char **words)
{
    size_t n;
    CheckpointLoaded loaded;
    qcc_context *cx = s->cx;
    const StateSlot *slots = trained_slots(s, &n);
    const CheckpointWanted wanted = { .slots = slots, .n = 2 * n, .others = true };
    TRY(checkpoint_load(r, path, &wanted, &loaded));
    if (!loaded.file)
        return fail_as(&cx->diag, IO, (Place){ .file = path, .byte = -1 }, "holds no checkpoint");
    if (cx->diag.files)
        file_set_reads(cx->diag.files, loaded.file, "what --checkpoint reads");
    bool has = false;
    for (size_t i = n; i < 2 * n; i++)
        has |= loaded.states[i] != NULL;
    if (!has && said == WEIGHTS_AVERAGED)
        return no_averages(s, loaded.file);
    const bool averaged = has && wants_averages(said, noted_in(&loaded.info));
    *words = !has ? NULL
                  : arena_printf(&cx->scratch,
                                 averaged ? "averaged weights of %s   --weights"
                                          : "last weights of %s, not averaged   --weights",
                                 loaded.file);
    return put_final(s, slots, loaded.states, n, averaged);
}

Status session_take_final(qcc_session *s, const char *path, WeightsKind said, const char **words)
{
    Heap heap;
    qcc_context *cx = s->cx;
    heap_open(&heap, &cx->memory);
    const CheckpointReader r = { &s->step->ir->types, &heap, &cx->scratch, &cx->diag, &cx->limits };
    *words = NULL;
    const Status status = load_final(s, &r, path, said, words);
    heap_close(&heap);
    return status;
}
