/* A session's states on their way out and in: checkpoints and the deployable model. */
#include <inttypes.h>
#include <string.h>

#include "api/session/export_form.h"
#include "api/session/export_quant.h"
#include "api/session/init_codes.h"
#include "api/session/state_codes.h"
#include "api/session/stored_states.h"
#include "api/session/weights.h"
#include "base/bytes.h"
#include "base/sha256.h"
#include "frontends/onnx/step.h"
#include "passes/recipe/choices.h"
#include "runtime/checkpoint/checkpoint.h"

/* ---- names ---- */

const char *step_next_command(const qcc_step *s, Arena *arena, const char *checkpoint)
{
    const bool made = model_is_step(s->model), says = !made && s->facts.given[0];
    return arena_printf(arena, "qcc --export %s%s%s --checkpoint %s -o OUT.onnx", s->model->file, says ? " " : "",
                        says ? s->facts.given : "", checkpoint);
}

/* ---- the deployable model ---- */

/* What codes stand for, in the scratch of the call. */
static Status take_numbers(qcc_session *s, const char *name, const Tensor **value)
{
    const Node *state = stored_node(s->step, name);
    if (!state)
        return OK;
    Tensor *numbers = tensor_new(&s->cx->scratch, stored_type(s->step, state));
    *value = numbers;
    return stored_get(s->step, s->run, state, numbers);
}

/* The states that go into the file; of one of floats stored weights are numbers. */
static Status trained_states(qcc_session *s, bool floats, TrainedStates *to)
{
    size_t n_states;
    const State *states = session_states(s->run, &n_states);
    TrainedState *all = NEWS(&s->cx->scratch, TrainedState, n_states + 1);
    to->list = all;
    to->n = 0;
    for (size_t i = 0; i < n_states; i++) {
        const Tensor *value;
        const Tensor *codes = NULL;
        TRY(session_final(s, &states[i], &value));
        if (value && floats)
            TRY(take_numbers(s, states[i].name, &value));
        if (value && states[i].trained)
            TRY(state_codes(s->step, states[i].name, value, &codes));
        if (value)
            all[to->n++] = (TrainedState){ .name = states[i].name,
                                           .value = value,
                                           .codes = codes,
                                           .of_training = !role_is_of_model(states[i].mark.role) };
    }
    return OK;
}

static Twin *twins_of(const qcc_session *s, size_t *n)
{
    const Choices *c = s->step->recipe.choices;
    Twin *twins = NEWS(&s->cx->scratch, Twin, (c ? c->n : 0) + 1);
    *n = 0;
    for (size_t i = 0; c && i < c->n; i++)
        if (c->list[i].kind == CHOICE_TIED)
            twins[(*n)++] = (Twin){ c->list[i].tied_to, c->list[i].name, c->list[i].transposed };
    return twins;
}

Status session_export(qcc_session *s, const ExportForm *form, Out *o)
{
    static const ExportForm plain = { .most_casts = INT64_MAX };
    TrainedStates states = { .weight_file = out_weight_file(o) };
    const WeightsKind usual = s->weights;
    if (form && form->weights != WEIGHTS_UNSAID)
        s->weights = form->weights;
    const bool floats = form && form->target && strcmp(form->target, "float") == 0;
    const Status status = trained_states(s, floats, &states);
    states.twins = twins_of(s, &states.n_twins);
    s->weights = usual;
    TRY(status);
    if (export_writes_again(s->step, form))
        return export_again(s->step, form, &states, o);
    return export_model(s->step->model, form ? form : &plain, &states, o);
}

/* ---- checkpoints ---- */

static void hash_text(char hash[SHA256_TEXT], const Text *t)
{
    uint8_t digest[SHA256_BYTES];
    Sha256 s;
    sha256_begin(&s);
    sha256_add(&s, t->p, t->n);
    sha256_end(&s, digest);
    sha256_text(hash, digest);
}

StateSlot session_slot(const qcc_step *step, const State *state)
{
    return (StateSlot){
        .name = state->name, .path_name = step_path(step, state->name), .type = state->type, .mark = state->mark
    };
}

/* Everything that the meaning of a state depends on: names, types, losses; not the rate. */
void session_identify(qcc_session *s, CheckpointInfo *info)
{
    Text model, step;
    size_t n;
    const State *states = session_states(s->run, &n);
    info->model_hash = s->model_hash;
    info->step_hash = s->step_hash;
    info->stored = codes_note(s->step);
    if (s->step_hash[0])
        return;
    text_open(&model, &s->cx->scratch);
    text_open(&step, &s->cx->scratch);
    for (size_t i = 0; i < n; i++) {
        const bool ours = !role_is_of_model(states[i].mark.role);
        if (states[i].mark.role == STATE_scaler)
            continue; /* a run may go on with or without */
        text_printf(ours ? &step : &model, "%s ", states[i].name);
        type_print(ours ? &step : &model, states[i].type);
        text_printf(ours ? &step : &model, " %d\n", states[i].trained);
    }
    text_printf(&step, "%s", s->step->facts.identity);
    hash_text(s->model_hash, &model);
    hash_text(s->step_hash, &step);
}

NamedTensor *session_copy_states(Heap *heap, const NamedTensor *states, size_t n)
{
    NamedTensor *copies = heap_alloc(heap, (n + 1) * sizeof *copies);
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(states[i].name) + 1;
        char *name = memcpy(heap_alloc(heap, length), states[i].name, length);
        Tensor *t = tensor_alloc(heap, states[i].tensor->type);
        if (t->bytes)
            bytes_copy(t->data, states[i].tensor->data, t->bytes);
        copies[i] = (NamedTensor){ name, t };
    }
    return copies;
}

/* A name or a value, which is a block of a heap. */
static void *block_of(const void *kept)
{
    return (void *)(uintptr_t)kept;
}

void session_keep_states(qcc_session *s, NamedTensor *kept, size_t n)
{
    for (size_t i = 0; i < s->n_kept; i++) {
        heap_free(&s->texts, block_of(s->kept[i].name));
        heap_free(&s->texts, block_of(s->kept[i].tensor));
    }
    heap_free(&s->texts, s->kept);
    heap_take(&s->texts, kept);
    for (size_t i = 0; i < n; i++) {
        heap_take(&s->texts, block_of(kept[i].name));
        heap_take(&s->texts, block_of(kept[i].tensor));
    }
    s->kept = kept;
    s->n_kept = n;
}

/* A state of the session with what a file had behind it. */
static const Tensor *lengthened(qcc_session *s, const Tensor *value, const Tensor *kept)
{
    Tensor *t = tensor_new(&s->cx->scratch, kept->type);
    bytes_copy(t->data, kept->data, kept->bytes);
    bytes_copy(t->data, value->data, value->bytes < kept->bytes ? value->bytes : kept->bytes);
    return t;
}

Status session_tensors(qcc_session *s, const NamedTensor **tensors, size_t *n)
{
    size_t n_states;
    const State *states = session_states(s->run, &n_states);
    NamedTensor *all = NEWS(&s->cx->scratch, NamedTensor, n_states + s->n_kept + 1);
    for (size_t i = 0; i < n_states; i++) {
        all[i].name = states[i].name;
        TRY(session_value(s->run, &states[i], &all[i].tensor));
    }
    *n = n_states;
    for (size_t k = 0; k < s->n_kept; k++) {
        size_t i = 0;
        while (i < n_states && strcmp(states[i].name, s->kept[k].name) != 0)
            i++;
        if (i < n_states)
            all[i].tensor = lengthened(s, all[i].tensor, s->kept[k].tensor);
        else
            all[(*n)++] = s->kept[k];
    }
    *tensors = all;
    return OK;
}

SafePair *session_properties(qcc_session *s)
{
    SafePair *pairs = NEWS(&s->cx->scratch, SafePair, s->n_properties + 1);
    for (size_t i = 0; i < s->n_properties; i++)
        pairs[i] = (SafePair){ s->properties[i].key, s->properties[i].value };
    return pairs;
}

/* Everything that a session's future depends on; the states in the scratch of the call. */
static Status collect(qcc_session *s, CheckpointInfo *info, char run[17], const NamedTensor **states, size_t *n)
{
    *info = (CheckpointInfo){ .step = session_step(s->run),
                              .seed = session_seed(s->run),
                              .options = s->step->facts.options,
                              .properties = session_properties(s),
                              .n_properties = s->n_properties };
    session_identify(s, info);
    checkpoint_run_id(run, info);
    info->run = run;
    return session_tensors(s, states, n);
}

static Status save_file(qcc_session *s, const char *path)
{
    CheckpointInfo info;
    CheckpointTarget target;
    CheckpointSaved saved;
    char run[17];
    size_t n;
    const NamedTensor *states;
    TRY(collect(s, &info, run, &states, &n));
    const CheckpointWish wish = { .path = path, .run = run, .limits = &s->cx->limits };
    TRY(checkpoint_open(&target, &s->cx->memory, &s->cx->diag, &wish));
    const Status status = checkpoint_save(&target, &s->cx->scratch, &info, states, n, false, &saved);
    checkpoint_close(&target);
    return status;
}

static Status save_bytes(qcc_session *s, const qcc_sink *to)
{
    CheckpointInfo info;
    char run[17];
    size_t n;
    Out o;
    const NamedTensor *states;
    TRY(collect(s, &info, run, &states, &n));
    TRY(out_open(&o, s->cx, to));
    return out_close(&o, checkpoint_put(out_sink(&o), &s->cx->memory, &s->cx->diag, &info, states, n));
}

static Status read_memory(const SafeBytes *b, Diag *d, uint64_t offset, void *out, size_t n)
{
    const qcc_source *from = b->user;
    (void)d;
    memcpy(out, (const char *)from->bytes + offset, n);
    return OK;
}

static Status read_host(const SafeBytes *b, Diag *d, uint64_t offset, void *out, size_t n)
{
    const qcc_source *from = b->user;
    if (from->read(from->user, offset, out, n) == QCC_OK)
        return OK;
    return fail_as(d, IO, (Place){ .file = b->name, .byte = (int64_t)offset }, "the host could not read %zu bytes", n);
}

static Status load_any(const CheckpointReader *r, const qcc_source *from, const CheckpointWanted *wanted,
                       CheckpointLoaded *loaded)
{
    const char *name = from->path ? from->path : from->name ? from->name : "checkpoint";
    SafeBytes bytes = { .name = name, .size = from->size, .user = (void *)(uintptr_t)from };
    if (!from->path && !from->bytes && !from->read)
        return fail_as(r->diag, USAGE, NOWHERE, "a source without path, bytes and function");
    bytes.read = from->read ? read_host : read_memory;
    TRY(from->path ? checkpoint_load(r, from->path, wanted, loaded) : checkpoint_get(r, &bytes, wanted, loaded));
    return loaded->file ? OK : fail_as(r->diag, IO, (Place){ .file = name, .byte = -1 }, "holds no checkpoint");
}

/* Nothing of the session changes before all of the checkpoint is there and found to fit. */
static Status load_from(qcc_session *s, Heap *heap, const qcc_source *from)
{
    size_t n;
    CheckpointInfo own = { 0 };
    CheckpointLoaded loaded;
    const State *states = session_states(s->run, &n);
    StateSlot *slots = NEWS(&s->cx->scratch, StateSlot, n + 1);
    for (size_t i = 0; i < n; i++)
        slots[i] = session_slot(s->step, &states[i]);
    session_identify(s, &own);
    const CheckpointReader r = { &s->step->ir->types, heap, &s->cx->scratch, &s->cx->diag, &s->cx->limits };
    const CheckpointWanted wanted = { .model_hash = own.model_hash,
                                      .step_hash = own.step_hash,
                                      .slots = slots,
                                      .n = n,
                                      .fresh_scale = s->step->recipe.precision.scale.fresh };
    TRY(load_any(&r, from, &wanted, &loaded));
    NamedTensor *kept = session_copy_states(heap, loaded.kept, loaded.n_kept);
    properties_replace(s, heap, loaded.info.properties, loaded.info.n_properties); /* the last that wants memory */
    session_keep_states(s, kept, loaded.n_kept);
    TRY(session_forget(s->run));
    TRY(session_adopt(s->run, loaded.states));
    session_set_step(s->run, loaded.info.step);
    session_set_seed(s->run, loaded.info.seed);
    return OK;
}

Status session_take(qcc_context *cx, qcc_step *step, Session *run, const char *path)
{
    size_t n;
    Heap heap;
    CheckpointLoaded loaded;
    const State *states = session_states(run, &n);
    StateSlot *slots = NEWS(&cx->scratch, StateSlot, n + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (role_is_deployed(states[i].mark.role) || states[i].mark.role == STATE_ema)
            slots[k++] = session_slot(step, &states[i]);
    heap_open(&heap, &cx->memory);
    const CheckpointReader r = { &step->ir->types, &heap, &cx->scratch, &cx->diag, &cx->limits };
    const CheckpointWanted wanted = { .slots = slots, .n = k, .others = true };
    Status status = checkpoint_load(&r, path, &wanted, &loaded);
    if (status == OK && !loaded.file)
        status = fail_as(&cx->diag, IO, (Place){ .file = path, .byte = -1 }, "holds no checkpoint");
    if (status == OK && cx->diag.files)
        file_set_reads(cx->diag.files, loaded.file, "what --checkpoint reads");
    for (size_t i = 0; i < k && status == OK; i++)
        if (loaded.states[i])
            status = session_put(run, slots[i].name, loaded.states[i]);
    heap_close(&heap);
    return status;
}

/* ---- the public calls ---- */

typedef struct StateCall {
    qcc_session *session;
    const qcc_sink *sink;
    const qcc_source *source;
    const char *options;
} StateCall;

static Status do_save(void *arg)
{
    const StateCall *c = arg;
    const char *path = c->sink->path;
    model_guard(c->session->step->model);
    return path && strcmp(path, "-") != 0 ? save_file(c->session, path) : save_bytes(c->session, c->sink);
}

qcc_status qcc_save(qcc_session *session, const qcc_sink *sink)
{
    StateCall c = { .session = session, .sink = sink };
    return sink ? session_call(session, do_save, &c, false) : QCC_USAGE;
}

static Status take_all(qcc_session *s, const qcc_source *from)
{
    Heap heap;
    heap_open(&heap, &s->cx->memory);
    const Status status = load_from(s, &heap, from);
    heap_close(&heap);
    return status;
}

Status session_take_all(qcc_session *s, const char *path)
{
    const qcc_source file = qcc_file(path);
    return take_all(s, &file);
}

static Status do_load(void *arg)
{
    const StateCall *c = arg;
    return take_all(c->session, c->source);
}

qcc_status qcc_load(qcc_session *session, const qcc_source *source)
{
    StateCall c = { .session = session, .source = source };
    return source ? session_call(session, do_load, &c, false) : QCC_USAGE;
}

static Status do_export(void *arg)
{
    const StateCall *c = arg;
    qcc_context *cx = c->session->cx;
    CommandLine line;
    ExportForm form;
    Out o;
    cx->diag.file = c->session->step->model->file;
    TRY(options_read_text(&cx->diag, &cx->scratch, "qcc_export_session", c->options, TEXT_EXPORTS, &line));
    TRY(export_form(cx, &line, &form));
    model_guard(c->session->step->model);
    TRY(out_open(&o, cx, c->sink));
    return export_close(&o, session_export(c->session, &form, &o));
}

qcc_status qcc_export_session(qcc_session *session, const char *options, const qcc_sink *sink)
{
    StateCall c = { .session = session, .sink = sink, .options = options };
    return sink ? session_call(session, do_export, &c, false) : QCC_USAGE;
}
