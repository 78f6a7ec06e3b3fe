/* The states of a run: where they come from, and when they are saved. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/session/init_weights.h"
#include "api/model/data.h"
#include "api/train/train.h"
#include "base/clock.h"
#include "frontends/onnx/step.h"

static const char *data_text(Trainer *t)
{
    Text x;
    text_open(&x, &t->step->arena);
    for (size_t i = 0; i < t->data.n_inputs; i++) {
        const char *path = dataset_path(t->data.set, i);
        if (path)
            text_printf(&x, "%s%s=%s", x.n ? " " : "", t->data.inputs[i].name, path);
    }
    text_printf(&x, " %" PRId64, dataset_samples(t->data.set));
    return text_get(&x);
}

static void set_info(Trainer *t)
{
    session_identify(t->session, &t->info);
    t->info.seed = t->info.shuffle_key = t->o.seed;
    t->info.data = data_text(t);
    t->info.options = t->step->facts.options;
    t->info.best_metric = t->o.by_accuracy ? "val_accuracy" : "val_loss";
    checkpoint_run_id(t->run_id, &t->info);
    t->info.run = t->run_id;
}

/* ---- loading ---- */

static StateSlot *slots_of(Trainer *t, size_t *n, bool trained)
{
    const State *states = session_states(t->run, n);
    StateSlot *slots = NEWS(&t->cx->scratch, StateSlot, *n + 1);
    size_t k = 0;
    for (size_t i = 0; i < *n; i++)
        if (!trained || role_is_deployed(states[i].mark.role))
            slots[k++] = session_slot(t->step, &states[i]);
    *n = k;
    return slots;
}

static CheckpointReader reader(Trainer *t, Heap *heap)
{
    return (CheckpointReader){ &t->step->ir->types, heap, &t->cx->scratch, t->d, &t->cx->limits };
}

static Status put_all(Trainer *t, const StateSlot *slots, Tensor *const *states, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (states[i])
            TRY(session_put(t->run, slots[i].name, states[i]));
    return OK;
}

/* How samples are drawn: a run that draws otherwise is another one. */
static const char *order_text(const Trainer *t)
{
    static const char *const lasts[] = { [FEED_DROP] = "drop", [FEED_PAD] = "pad", [FEED_KEEP] = "keep" };
    return arena_printf(&t->step->arena, "--seed %" PRIu64 " %s--last %s --val-split %g", t->o.seed,
                        t->o.shuffle ? "" : "--no-shuffle ", lasts[t->o.last],
                        option_real(&t->c->line, OPT_val_split, 0));
}

static const char *property_of(const CheckpointInfo *info, const char *key)
{
    for (size_t i = 0; i < info->n_properties; i++)
        if (strcmp(info->properties[i].key, key) == 0)
            return info->properties[i].value;
    return NULL;
}

static int64_t count_of(const CheckpointInfo *info, const char *key)
{
    const char *text = property_of(info, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

static Status check_order(Trainer *t, const CheckpointLoaded *loaded)
{
    const char *then = property_of(&loaded->info, "qcc.order"), *now = order_text(t);
    if (!then || strcmp(then, now) == 0)
        return OK;
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, (Place){ .file = loaded->file, .byte = -1 },
                             "was saved by a run that draws its samples otherwise: %s, not %s", then, now);
    message_try(m, "%s", then);
    return message_send(m);
}

void train_note(Trainer *t, const char *what, const char *then, const char *now)
{
    if (!then || strcmp(then, now) == 0)
        return;
    if (!t->notes_open)
        text_open(&t->notes, &t->step->arena);
    t->notes_open = true;
    text_printf(&t->notes, "%s: %s then, %s now\n", what, then, now);
}

/* What differs between the run that was saved and this one, where it may. */
static void note_changes(Trainer *t, const CheckpointInfo *old)
{
    train_note(t, "data", old->data, t->info.data);
    train_note(t, "options", old->options, t->info.options);
}

/* The checkpoint to go on from; its states become others where --convert lets them. */
static Status load(Trainer *t, Heap *heap, const StateSlot *slots, size_t n, CheckpointLoaded *loaded)
{
    bool other = false;
    const CheckpointReader from = reader(t, heap);
    const CheckpointWanted wanted = { .model_hash = t->info.model_hash,
                                      .step_hash = t->info.step_hash,
                                      .options = t->info.options,
                                      .slots = slots,
                                      .n = n,
                                      .converts = !model_is_step(t->step->model),
                                      .fresh_scale = t->step->recipe.precision.scale.fresh };
    if (t->o.convert_states || t->o.convert_weights)
        TRY(train_convert(t, heap, slots, n, loaded, &other));
    return other ? OK : checkpoint_load(&from, t->folder, &wanted, loaded);
}

static Status resume(Trainer *t, Heap *heap)
{
    size_t n;
    CheckpointLoaded loaded;
    const StateSlot *slots = slots_of(t, &n, false);
    TRY(load(t, heap, slots, n, &loaded));
    if (!loaded.file && t->o.must_resume)
        return fail_as(t->d, IO, (Place){ .file = t->folder, .byte = -1 }, "holds no checkpoint to go on from");
    if (!loaded.file)
        return out_printf(t->c->out, "%-16s nothing in %s yet: a new run\n", "resume", t->folder);
    TRY(put_all(t, slots, loaded.states, n));
    session_keep_states(t->session, session_copy_states(heap, loaded.kept, loaded.n_kept), loaded.n_kept);
    TRY(check_order(t, &loaded));
    note_changes(t, &loaded.info);
    t->resumed_from = arena_string(&t->step->arena, loaded.file);
    memcpy(t->run_id, loaded.info.run, strlen(loaded.info.run) < sizeof t->run_id ? strlen(loaded.info.run) : 16);
    t->info.best = loaded.info.best;
    t->info.best_step = loaded.info.best_step;
    t->done = (int64_t)loaded.info.step;
    for (size_t i = 0; i < loaded.info.n_properties; i++)
        property_set(t->session, loaded.info.properties[i].key, loaded.info.properties[i].value);
    t->skipped = count_of(&loaded.info, "qcc.skipped");
    t->skipped_in_a_row = count_of(&loaded.info, "qcc.skipped_in_a_row");
    t->good = t->done - t->skipped_in_a_row;
    t->validated_at = count_of(&loaded.info, "qcc.validated");
    t->stale = count_of(&loaded.info, "qcc.stale");
    t->best = (Best){ .known = property_of(&loaded.info, "qcc.best_epoch") != NULL,
                      .value = loaded.info.best,
                      .epoch = count_of(&loaded.info, "qcc.best_epoch") };
    t->saved_at = t->done;
    session_set_step(t->run, (uint64_t)t->done);
    return OK;
}

Status train_restore(Trainer *t)
{
    const char *init = option_text(&t->c->line, OPT_init);
    Heap heap;
    Status status = OK;
    set_info(t);
    if (t->o.resume && !t->folder)
        return fail_as(t->d, USAGE, ON_COMMAND_LINE, "--resume: from where? (--checkpoint PATH)");
    heap_open(&heap, &t->cx->memory);
    if (init)
        status = init_weights(t->step, t->run, init, option_given(&t->c->line, OPT_init_partial), t->c->out);
    if (status == OK && t->o.resume)
        status = resume(t, &heap);
    heap_close(&heap);
    return status;
}

/* ---- saving ---- */

static void set_count(Trainer *t, const char *key, int64_t n)
{
    property_set(t->session, key, arena_printf(&t->cx->scratch, "%" PRId64, n));
}

static void note_place(Trainer *t)
{
    const int64_t batches = t->batches > 0 ? t->batches : 0;
    t->info.step = (uint64_t)t->done;
    t->info.epoch = batches ? (uint64_t)(t->done / batches) : 0;
    t->info.position = (uint64_t)((batches ? t->done % batches : t->done) * dataset_batch(t->data.set));
    t->info.best = t->best.value;
    property_set(t->session, "qcc.order", order_text(t));
    set_count(t, "qcc.skipped", t->skipped);
    set_count(t, "qcc.skipped_in_a_row", t->skipped_in_a_row);
    if (t->val_feed)
        set_count(t, "qcc.validated", t->validated_at);
    if (t->best.known)
        set_count(t, "qcc.best_epoch", t->best.epoch);
    if (t->o.patience)
        set_count(t, "qcc.stale", t->stale);
    t->info.properties = session_properties(t->session);
    t->info.n_properties = t->session->n_properties;
}

bool train_save_is_due(const Trainer *t, int64_t step)
{
    const Interval *v = &t->o.every;
    if (!t->saving || t->saved_at == step)
        return false;
    if (v->steps && step % v->steps == 0)
        return true;
    if (v->epochs && t->batches > 0 && step % (t->batches * v->epochs) == 0)
        return true;
    if (t->retry_at > 0 && clock_seconds() >= t->retry_at)
        return true;
    return v->seconds > 0 && clock_seconds() - t->saved_when >= v->seconds;
}

Status train_write_state(Trainer *t, Diag *d, const char *path, uint64_t *bytes)
{
    CheckpointTarget target;
    CheckpointSaved saved;
    size_t n;
    const NamedTensor *states;
    TRY(session_tensors(t->session, &states, &n));
    const CheckpointWish wish = { .path = path, .run = t->run_id, .limits = &t->cx->limits };
    note_place(t);
    TRY(checkpoint_open(&target, &t->cx->memory, d, &wish));
    const Status status = checkpoint_save(&target, &t->cx->scratch, &t->info, states, n, false, &saved);
    checkpoint_close(&target);
    TRY(status);
    *bytes = saved.bytes;
    return OK;
}

Status train_write_final(Trainer *t, Diag *d, uint64_t *bytes)
{
    const char *path = train_final_path(t);
    TRY(train_write_state(t, d, path, bytes));
    t->final_path = path;
    return OK;
}

static Status log_saved(Trainer *t, const CheckpointSaved *saved, bool best)
{
    const LogSave line = { .step = logged_int(t->done),
                           .file = logged_text(saved->path),
                           .bytes = logged_int((int64_t)saved->bytes),
                           .best = logged_flag(best) };
    return train_log_save(t, &line);
}

/* What goes wrong is told to `d`. */
static Status save(Trainer *t, Diag *d, bool best)
{
    size_t n;
    uint64_t bytes;
    CheckpointSaved saved;
    if (!t->saving)
        return t->o.no_save ? OK : train_write_final(t, d, &bytes);
    const NamedTensor *states;
    TRY(session_tensors(t->session, &states, &n));
    const uint64_t best_step = t->info.best_step;
    Diag *usual = t->target.diag;
    if (best)
        t->info.best_step = (uint64_t)t->done;
    note_place(t);
    t->target.diag = d;
    const Status status = checkpoint_save(&t->target, &t->cx->scratch, &t->info, states, n, best, &saved);
    t->target.diag = usual;
    if (status != OK)
        t->info.best_step = best_step;
    TRY(status);
    t->saved_at = t->done;
    t->saved_when = clock_seconds();
    t->retry_at = t->retry_wait = 0;
    t->saved_as = arena_printf(&t->cx->scratch, "%s (%s)", saved.path, bytes_text(&t->cx->scratch, saved.bytes));
    return log_saved(t, &saved, best);
}

Status train_save_last(Trainer *t)
{
    return save(t, t->d, false);
}

/* The first error of a save, kept instead of told; what is no error is told as it is. */
typedef struct Caught {
    Diag diag, *usual;
    const Message *error;
} Caught;

static void catch_error(void *user, const Message *m)
{
    Caught *c = user;
    if (m->severity != SEVERITY_ERROR)
        c->usual->report(c->usual->user, m);
    else if (!c->error)
        c->error = m;
}

static Status warn_unsaved(Trainer *t, const Message *m)
{
    enum { FIRST_WAIT = 10, LONGEST_WAIT = 600 }; /* seconds */
    const double next = t->retry_wait > 0 ? t->retry_wait * 2 : FIRST_WAIT;
    t->retry_wait = next < LONGEST_WAIT ? next : LONGEST_WAIT;
    t->retry_at = clock_seconds() + t->retry_wait;
    Message *w =
        message_new(t->d, SEVERITY_WARNING, OK, m->place, "step %" PRId64 " is not saved, %s: tried again in %s",
                    t->done, m->text, duration_text(&t->cx->scratch, t->retry_wait));
    message_try(w, "--on-save-error stop, to end the run instead");
    return message_send(w);
}

Status train_try(Trainer *t, Status (*write)(Trainer *t, const char *path), const char *path, bool *written)
{
    Diag usual = *t->d;
    Caught caught = { .usual = &usual };
    t->d->report = catch_error;
    t->d->user = &caught;
    const Status status = write(t, path);
    *t->d = usual;
    *written = status == OK;
    if (status != IO || !caught.error)
        return status;
    return warn(t->d, caught.error->place, "the best model is not written, %s", caught.error->text);
}

Status train_save(Trainer *t, bool best, bool *saved)
{
    Caught caught = { .usual = t->d };
    *saved = false;
    if (t->o.save_error_stops) {
        TRY(save(t, t->d, best));
        *saved = true;
        return OK;
    }
    diag_open(&caught.diag, &t->cx->scratch, catch_error, &caught);
    const Status status = save(t, &caught.diag, best);
    *saved = status == OK;
    return status == IO && caught.error ? warn_unsaved(t, caught.error) : status;
}
