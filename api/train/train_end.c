/* How a run ends: it writes what it leaves and reports it afterwards, since nobody may be reading any more.
 *
 * A run that ends as it should, or by a signal, or with a step that diverged, writes its last checkpoint and what -o and
 * --gradients name.  One that an error ends leaves its states, and no model that somebody might deploy.  Where a place
 * fails, the states go to the one that a run has which names none. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/data.h"
#include "api/session/export_form.h"
#include "api/train/train.h"
#include "runtime/write/npz.h"

/* ---- what is written ---- */

/* `told`: the files that it is. */
static Status write_model(Trainer *t, const char *path, const char **told, const char **notes, uint64_t *bytes)
{
    Out o;
    const qcc_sink sink = qcc_to_file(path);
    const ExportForm form = { .target = t->made_for, .most_casts = INT64_MAX };
    TRY(out_open(&o, t->cx, &sink));
    TRY(out_close(&o, session_export(t->session, &form, &o)));
    *told = out_told(&o);
    *notes = o.notes;
    *bytes = o.bytes;
    return OK;
}

static Status put_best(Trainer *t, const char *path)
{
    uint64_t bytes;
    const char *told, *notes;
    if (!train_is_model(path)) {
        TRY(train_write_state(t, t->d, path, &bytes));
        t->best_told = arena_printf(&t->step->arena, "%s (%s)", path, bytes_text(&t->cx->scratch, bytes));
        return OK;
    }
    TRY(write_model(t, path, &told, &notes, &bytes));
    t->best_told = arena_string(&t->step->arena, told);
    return OK;
}

Status train_write_best(Trainer *t, bool *written)
{
    const char *path = option_text(&t->c->line, OPT_best_output);
    TRY(train_try(t, put_best, path, written));
    t->best_lost = !*written;
    return OK;
}

static Status write_gradients(Trainer *t, const char *path)
{
    size_t n, k = 0;
    Out o;
    State *states = session_states(t->run, &n);
    NamedTensor *all = NEWS(&t->cx->scratch, NamedTensor, n + 1);
    const qcc_sink sink = qcc_to_file(path);
    for (size_t i = 0; i < n; i++) {
        const Tensor *g = session_gradient(t->run, &states[i]);
        if (g)
            all[k++] = (NamedTensor){ states[i].name, g };
    }
    TRY(out_open(&o, t->cx, &sink));
    return out_close(&o, npz_write(&t->cx->scratch, out_sink(&o), all, k));
}

/* A run that had no step left to do has none of what a step leaves. */
static Status warn_no_step(Trainer *t, const char *path)
{
    return warn(t->d, ON_COMMAND_LINE, "--gradients: %s is not written, this run made no step", path);
}

/* ---- the order of it ---- */

typedef struct End {
    Trainer *t;
    bool regular;  /* no error ended the run */
    bool saved;    /* the last checkpoint is there */
    bool left;     /* the states, or a model with them, are in a file */
    Status status; /* the first failure of writing */
    Text told;     /* what is said of it, at the end */
    Text objects;  /* the same as objects */
} End;

static void note_failure(End *e, Status status)
{
    if (e->status == OK)
        e->status = status;
}

static void tell_file(End *e, const char *path, uint64_t bytes, const char *text, const char *notes)
{
    const LogExtra fields[] = { { "file", logged_text(path) },
                                { "bytes", bytes ? logged_int((int64_t)bytes) : (LogValue){ 0 } },
                                { "text", logged_text(text) },
                                { "notes", notes ? logged_text(notes) : (LogValue){ 0 } } };
    if (out_is_json(e->t->c->out))
        log_any_line(&e->objects, "wrote", fields, COUNT(fields));
    else
        text_printf(&e->told, "wrote %s\n%s", text, notes ? notes : "");
}

/* `path`: null where no option says one. */
static void leave_state(End *e, const char *path)
{
    uint64_t bytes;
    Trainer *t = e->t;
    const Status status = path ? train_write_state(t, t->d, path, &bytes) : train_write_final(t, t->d, &bytes);
    note_failure(e, status);
    if (status != OK)
        return;
    if (!path)
        path = t->final_path;
    e->left = true;
    tell_file(e, path, bytes,
              arena_printf(&t->cx->scratch, "%s (%s)   next: %s", path, bytes_text(&t->cx->scratch, bytes),
                           step_next_command(t->step, &t->cx->scratch, path)),
              NULL);
}

static void leave_model(End *e, const char *path)
{
    uint64_t bytes;
    const char *told, *notes;
    const Status status = write_model(e->t, path, &told, &notes, &bytes);
    note_failure(e, status);
    if (status != OK)
        return;
    e->left = true;
    tell_file(e, path, bytes, told, notes);
}

static void leave_checkpoint(End *e)
{
    Trainer *t = e->t;
    const Status status = t->saved_at != t->done ? train_save_last(t) : OK;
    note_failure(e, status);
    e->saved = status == OK;
    e->left |= e->saved;
}

static void leave_all(End *e)
{
    Trainer *t = e->t;
    const char *out = option_text(&t->c->line, OPT_output_path), *gradients = option_text(&t->c->line, OPT_gradients);
    if (t->saving)
        leave_checkpoint(e);
    if (e->regular && gradients)
        note_failure(e, t->last.step ? write_gradients(t, gradients) : warn_no_step(t, gradients));
    if (e->regular && out && train_is_model(out))
        leave_model(e, out);
    else if (e->regular && out)
        leave_state(e, out);
    if (!e->left && !t->o.no_save)
        leave_state(e, NULL);
    if (t->best_told)
        tell_file(e, option_text(&t->c->line, OPT_best_output), 0,
                  arena_printf(&t->cx->scratch, "%s, the best: epoch %" PRId64, t->best_told, t->best.epoch), NULL);
    if (e->saved && !(e->regular && out))
        text_printf(&e->told, "saved %s   next: %s\n", t->folder,
                    step_next_command(t->step, &t->cx->scratch, t->folder));
}

static const char *reason_of(Status status, const char *reason)
{
    switch (status) {
    case OK:
        return reason;
    case MISMATCH:
        return "diverged";
    case INTERRUPTED:
        return "interrupted";
    default:
        return "failed";
    }
}

/* A log, a board or a best model that could not be written to the end is an output that is not there. */
static Status check_logs(Trainer *t)
{
    const struct {
        bool lost;
        const char *path;
    } all[] = { { t->log.lost, t->log.path }, { t->board.lost, t->board.path } };
    Status status = OK;
    if (t->best_lost)
        status = fail_as(t->d, IO, (Place){ .file = option_text(&t->c->line, OPT_best_output), .byte = -1 },
                         "is not the best model: that could not be written");
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].lost)
            status = fail_as(t->d, IO, (Place){ .file = all[i].path, .byte = -1 },
                             "is not whole: the run went on without it");
    return status;
}

/* --shadow: what was compared, where nothing differed. */
static void tell_shadow(End *e)
{
    const Trainer *t = e->t;
    if (!t->shadow_steps)
        return;
    if (out_is_json(t->c->out))
        log_record(&e->objects, "shadow", { "steps", logged_int(t->shadow_steps) });
    else
        text_printf(&e->told, "shadow   %" PRId64 " step%s on the reference, too: every bit the same\n",
                    t->shadow_steps, t->shadow_steps == 1 ? "" : "s");
}

/* How an interrupted run goes on, where its states are. */
static void tell_resume(End *e)
{
    Trainer *t = e->t;
    Text line;
    const char *from = e->saved ? t->folder : t->final_path;
    if (!from)
        return;
    text_open(&line, &t->cx->scratch);
    options_print_line(&line, &t->c->line);
    text_printf(&e->told, "to go on: qcc train %s", text_get(&line));
    if (!t->folder)
        text_printf(&e->told, " --checkpoint %s", from);
    text_printf(&e->told, "%s\n", t->o.resume ? "" : " --resume");
}

Status train_end(Trainer *t, Status status, const char *reason)
{
    End e = { .t = t, .regular = status == OK || status == INTERRUPTED || status == MISMATCH };
    if (!e.regular && t->done == t->progress.first)
        return status; /* nothing has happened */
    text_open(&e.told, &t->cx->scratch);
    text_open(&e.objects, &t->cx->scratch);
    leave_all(&e);
    if (status == OK || status == INTERRUPTED)
        tell_shadow(&e);
    if (status == INTERRUPTED)
        tell_resume(&e);
    const Status first = status != OK ? status : e.status;
    const Status told = train_tell_end(t, first, reason_of(first, reason));
    const Status files = out_objects(t->c->out, &e.objects);
    const Status words = out_bytes(t->c->out, e.told.p, e.told.n), logs = check_logs(t);
    const Status all[] = { first, told, files, words, logs };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i] != OK)
            return all[i];
    return OK;
}
