/* diverged-STEP: what a step was that was not finite, and what `qcc explain` makes of it.
 *
 *     options.txt           the command line, then what replaying needs, a word and its value a line
 *     state.safetensors     the state before the step
 *     batch.npz             the batch that the step read, as the model got it */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/train/train.h"
#include "base/file.h"
#include "runtime/write/npz.h"
#include "passes/engine/results.h"

static const char *inside(Arena *arena, const char *folder, const char *name)
{
    return arena_printf(arena, "%s/%s", folder, name);
}

/* ---- leaving it ---- */

static Status write_words(Trainer *t, const char *path)
{
    Text text;
    Out o;
    const qcc_sink sink = qcc_to_file(path);
    text_open(&text, &t->cx->scratch);
    text_add(&text, "command qcc train ");
    options_print_line(&text, &t->c->line);
    text_printf(&text, "\nmodel %s\nstep %" PRId64 "\nseed %" PRIu64 "\nvalid %" PRId64 "\ncompiled %s\n",
                t->c->line.paths[0], t->done + 1, t->o.seed, t->batch.valid,
                model_is_step(t->step->model) ? "" : t->step->facts.options);
    TRY(out_open(&o, t->cx, &sink));
    return out_close(&o, out_bytes(&o, text.p, text.n));
}

static Status write_batch(Trainer *t, const char *path)
{
    Out o;
    const qcc_sink sink = qcc_to_file(path);
    NamedTensor *all = NEWS(&t->cx->scratch, NamedTensor, t->data.n_inputs + 1);
    size_t n = 0;
    for (size_t i = 0; i < t->data.n_inputs; i++)
        if (t->batch.values[i])
            all[n++] = (NamedTensor){ t->data.inputs[i].name, t->batch.values[i] };
    TRY(out_open(&o, t->cx, &sink));
    return out_close(&o, npz_write(&t->cx->scratch, out_sink(&o), all, n));
}

/* Whether a folder holds the step of another run: that stays. */
static bool is_of_another(Trainer *t, const char *folder)
{
    const char *state = inside(&t->cx->scratch, folder, "state.safetensors");
    return file_exists(state) && !checkpoint_is_of(state, t->run_id, &t->cx->memory, &t->cx->limits);
}

Status train_bundle(Trainer *t)
{
    uint64_t bytes;
    Arena *arena = &t->cx->scratch;
    const char *run = t->folder && !checkpoint_is_file(t->folder) ? arena_printf(arena, "%s/", t->folder) : "",
               *plain = arena_printf(arena, "%sdiverged-%" PRId64, run, t->done + 1), *folder = plain;
    for (int i = 2; is_of_another(t, folder); i++)
        folder = arena_printf(arena, "%s.%d", plain, i);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return file_failed(t->d, folder, "cannot be made", errno);
    TRY(write_words(t, inside(arena, folder, "options.txt")));
    TRY(train_write_state(t, t->d, inside(arena, folder, "state.safetensors"), &bytes));
    TRY(write_batch(t, inside(arena, folder, "batch.npz")));
    return out_printf(t->c->out,
                      "saved    %s: the state before the step, its batch, the options   next: qcc explain %s\n", folder,
                      folder);
}

/* ---- replaying it ---- */

typedef struct Replay {
    Command *c;
    const char *folder, *model, *compiled;
    int64_t step, valid;
    uint64_t seed;
    qcc_step *made;
    qcc_session *session;
    Heap heap;
} Replay;

bool diverged_is_folder(const char *path)
{
    struct stat there;
    char name[4096];
    const size_t n = strlen(path);
    static const char file[] = "/options.txt";
    if (n + sizeof file > sizeof name)
        return false;
    memcpy(name, path, n);
    memcpy(name + n, file, sizeof file);
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode) && stat(name, &there) == 0;
}

static Status read_words(Replay *r)
{
    static const int64_t largest = 1 << 20;
    qcc_context *cx = r->c->cx;
    const char *path = inside(&cx->scratch, r->folder, "options.txt");
    Str text;
    TRY(file_read(&cx->scratch, &cx->diag, path, largest, "file", &text));
    for (size_t at = 0; at < text.n;) {
        const char *line = text.p + at, *end = memchr(line, '\n', text.n - at);
        const size_t n = end ? (size_t)(end - line) : text.n - at;
        const char *all = arena_copy(&cx->scratch, line, n), *space = strchr(all, ' '), *value = space ? space + 1 : "";
        if (strncmp(all, "model ", 6) == 0)
            r->model = value;
        else if (strncmp(all, "compiled ", 9) == 0)
            r->compiled = value;
        else if (strncmp(all, "step ", 5) == 0)
            r->step = strtoll(value, NULL, 10);
        else if (strncmp(all, "valid ", 6) == 0)
            r->valid = strtoll(value, NULL, 10);
        else if (strncmp(all, "seed ", 5) == 0)
            r->seed = strtoull(value, NULL, 10);
        at += n + 1;
    }
    if (r->model && r->step > 0)
        return OK;
    return fail(&cx->diag, (Place){ .file = path, .byte = -1 }, "names no model and step: qcc train did not write it");
}

/* Takes what makes a step narrow out of a line; whether there was something. */
static bool widen(CommandLine *line)
{
    size_t n = 0;
    const char *amp = option_text(line, OPT_amp);
    const bool was = amp && strcmp(amp, "off") != 0;
    for (size_t i = 0; i < line->n_given; i++)
        if (option_specs[line->given[i].option].topic != TOPIC_QUANT)
            line->given[n++] = line->given[i];
    line->n_given = n;
    return was;
}

static Status compile_again(Replay *r, CommandLine *line)
{
    qcc_model *m;
    qcc_context *cx = r->c->cx;
    const qcc_source source = { .path = r->model };
    TRY(model_read(cx, &source, line, &m));
    TRY(step_compile(m, line, &r->made));
    return session_start(r->made, r->seed, &cx->hurry, &r->session);
}

static Status bind_batch(Replay *r)
{
    qcc_context *cx = r->c->cx;
    const qcc_step *s = r->made;
    TrainData data = { .inputs = NEWS(&cx->scratch, DataInput, s->n_inputs + 1) };
    Tensor **values = NEWS(&cx->scratch, Tensor *, s->n_inputs + 1);
    Batch batch = { .values = values, .valid = r->valid, .rows = s->facts.batch };
    const DataOptions options = { 0 };
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Value *v = &s->inputs[i];
        const DataSpec spec = { .flag = "--data",
                                .kind = DATA_FILE,
                                .path = inside(&cx->scratch, r->folder, "batch.npz"),
                                .given = 1u << DATA_key,
                                .scale = 1,
                                .divisor = 1,
                                .to = -1,
                                .key = v->name };
        const Node *n = input_named(module_graph(s->module, "step"), v->name);
        if (n && node_role(n).role == INPUT_valid)
            continue;
        data.inputs[data.n_inputs] = (DataInput){ .name = v->name, .type = v->type };
        TRY(data_tensor(&s->ir->types, &r->heap, &cx->diag, &cx->limits, &options, &spec, v->type,
                        &values[data.n_inputs++]));
    }
    return train_bind(s, r->session->run, &cx->scratch, &data, &batch);
}

static Status tell_number(Out *out, const char *what, double x)
{
    return out_printf(out, "%-8s %g\n", what, x);
}

/* Runs the step, and says what came of it. */
static Status run_again(Replay *r, RunResult *result)
{
    Out *out = r->c->out;
    TRY(bind_batch(r));
    session_set_step(r->session->run, (uint64_t)r->step - 1);
    TRY(session_run(r->session->run, RUN_STEP, result));
    if (result->has_loss)
        TRY(tell_number(out, "loss", result->loss));
    return result->has_norm ? tell_number(out, "|g|", result->norm) : OK;
}

static Status tell_culprit(Replay *r)
{
    Culprit culprit;
    TRY(session_culprit(r->session, &culprit));
    return session_explain(r->c->out, r->session, &culprit);
}

/* The same step without mixed precision: whether it is the narrow types that overflow. */
static Status run_wide(Replay *r, CommandLine *line, const char *states)
{
    RunResult result;
    TRY(compile_again(r, line));
    TRY(session_take(r->c->cx, r->made, r->session->run, states));
    TRY(out_printf(r->c->out, "in f32   the same step:\n"));
    TRY(run_again(r, &result));
    if (result.finite)
        return out_printf(r->c->out, "         finite: it is the narrow types that overflow\n");
    return tell_culprit(r);
}

static Status replay_wide(const Replay *narrow, CommandLine *line, const char *states)
{
    Replay r = *narrow;
    if (!widen(line))
        return OK;
    heap_open(&r.heap, &r.c->cx->memory);
    const Status status = run_wide(&r, line, states);
    heap_close(&r.heap);
    return status;
}

static Status replay(Replay *r)
{
    RunResult result;
    CommandLine line;
    qcc_context *cx = r->c->cx;
    const char *states = inside(&cx->scratch, r->folder, "state.safetensors");
    TRY(read_words(r));
    TRY(options_read_text(&cx->diag, &cx->scratch, "options.txt", r->compiled, TEXT_COMPILES, &line));
    TRY(compile_again(r, &line));
    TRY(session_take_all(r->session, states));
    TRY(out_printf(r->c->out, "%s    step %" PRId64 " of %s, seed %" PRIu64 "\n", r->folder, r->step, r->model,
                   r->seed));
    TRY(run_again(r, &result));
    TRY(result.finite
            ? out_printf(r->c->out, "replayed it is finite: this build, or the model's file, is not what it was\n")
            : tell_culprit(r));
    return replay_wide(r, &line, states);
}

Status diverged_explain(Command *c, const char *folder)
{
    Replay r = { .c = c, .folder = folder, .compiled = "" };
    heap_open(&r.heap, &c->cx->memory);
    const Status status = replay(&r);
    heap_close(&r.heap);
    return status;
}
