/* Where a run writes: its states, models, logs; found out before the first step. */
#include <string.h>

#include "api/model/destinations.h"
#include "api/train/train.h"

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

bool train_is_model(const char *path)
{
    return ends_in(path, ".onnx");
}

/* Whether a file can be made there, found out before hours have passed. */
static Status try_path(Trainer *t, const char *path)
{
    FileOut f;
    TRY(file_create(&f, &t->cx->scratch, t->d, path));
    file_drop(&f);
    return OK;
}

const char *train_final_path(Trainer *t)
{
    const char *plain = t->step->facts.trained_path, *path = plain;
    const int n = (int)(strlen(plain) - strlen(".safetensors"));
    if (t->final_path)
        return t->final_path;
    for (int i = 2; file_exists(path) && !t->o.overwrite; i++)
        path = arena_printf(&t->step->arena, "%.*s-%d.safetensors", n, plain, i);
    return path;
}

/* States that are named are replaced by the run that wrote them and goes on, or where that is said. */
static Status check_states(Trainer *t, const char *out, const char *option)
{
    const bool own = t->o.resume && checkpoint_is_of(out, t->run_id, &t->cx->memory, &t->cx->limits);
    return own || t->o.overwrite ? OK : checkpoint_is_free(out, option, &t->cx->memory, t->d, &t->cx->limits);
}

/* A model, or states: what -o and --best-output write. */
static Status check_output(Trainer *t, Option o)
{
    const char *out = option_text(&t->c->line, o), *name = option_specs[o].name;
    if (!out)
        return OK;
    if (!train_is_model(out) && !ends_in(out, ".safetensors")) {
        Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, (Place){ .file = out, .byte = -1 },
                                 "is neither a model nor a state");
        message_try(m, "%s %s.onnx, or %s %s.safetensors", name, out, name, out);
        return message_send(m);
    }
    if (!train_is_model(out))
        TRY(check_states(t, out, name));
    return try_path(t, out);
}

Status train_open_outputs(Trainer *t)
{
    const char *out = option_text(&t->c->line, OPT_output_path), *log = option_text(&t->c->line, OPT_log),
               *gradients = option_text(&t->c->line, OPT_gradients), *board = option_text(&t->c->line, OPT_tensorboard);
    TRY(check_output(t, OPT_output_path));
    TRY(check_output(t, OPT_best_output));
    if (gradients)
        TRY(try_path(t, gradients));
    if (t->folder) {
        const CheckpointWish wish = { .path = t->folder,
                                      .run = t->run_id,
                                      .keep = t->o.keep,
                                      .fresh = !t->o.resume && !t->o.overwrite,
                                      .replaces = t->o.overwrite,
                                      .limits = &t->cx->limits };
        TRY(checkpoint_open(&t->target, &t->cx->memory, t->d, &wish));
        t->saving = true;
    } else if (!out && !t->o.no_save) {
        const char *path = train_final_path(t);
        TRY(destination_add(t->cx, path, "the final state"));
        TRY(try_path(t, path));
    }
    if (log)
        TRY(t->resumed_from ? log_resume(&t->log, &t->cx->memory, t->d, log, t->done)
                            : log_open(&t->log, &t->cx->memory, t->d, log));
    return board
               ? board_open(&t->board, &t->cx->memory, t->d, board, train_wall_clock(), t->resumed_from ? t->done : -1)
               : OK;
}
