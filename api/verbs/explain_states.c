/* explain of a checkpoint, or of any safetensors file: which tensors it holds, and what a run says of itself in it. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "api/hall/words.h"
#include "api/verbs/explain.h"
#include "base/file.h"
#include "ir/store/safetensors.h"

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The newest checkpoint of a folder is what `last` points to. */
static const char *file_of(Arena *arena, const char *path)
{
    const char *last = arena_printf(arena, "%s/last", path);
    return is_folder(path) && file_exists(last) ? last : path;
}

bool explain_is_states(Arena *arena, const char *path)
{
    const char *file = file_of(arena, path), *end = ".safetensors";
    const size_t n = strlen(path), k = strlen(end);
    return file != path || (n > k && strcmp(path + n - k, end) == 0 && !is_folder(path));
}

static void tell_value(Text *t, const char *word, const char *value)
{
    if (!value || !*value)
        return;
    text_label(t, word);
    text_escape(t, value, strlen(value), 400);
    text_char(t, '\n');
}

/* What a run notes, in the order in which people ask. */
static void tell_run(Text *t, const SafeTensors *s)
{
    static const struct {
        const char *key, *word;
    } all[] = { { "qcc.run", "run" },
                { "qcc.step", "step" },
                { "qcc.epoch", "epochs done" },
                { "property.qcc.weights", "judged weights" },
                { "qcc.best_metric", "best by" },
                { "qcc.best", "best" },
                { "qcc.best_step", "best at step" },
                { "qcc.seed", "seed" },
                { "qcc.options", "options" },
                { "qcc.data", "data" } };
    const char *best = safetensors_metadata(s, "qcc.best_step");
    const bool has_best = best && strcmp(best, "0") != 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (has_best || strncmp(all[i].key, "qcc.best", 8) != 0)
            tell_value(t, all[i].word, safetensors_metadata(s, all[i].key));
}

static void tell_metadata(Text *t, const SafeTensors *s)
{
    for (size_t i = 0; i < s->n_metadata; i++)
        if (strncmp(s->metadata[i].key, "qcc.", 4) != 0 && strncmp(s->metadata[i].key, "property.qcc.", 13) != 0)
            tell_value(t, s->metadata[i].key, s->metadata[i].value);
}

static bool is_ours(const char *name)
{
    return !role_is_of_model(role_by_name(ROLES_OF_STATES, name).role); /* a file has names alone */
}

static void tell_tensors(Text *t, const SafeTensors *s, Arena *arena, bool ours, bool all)
{
    enum { SOME = 12 };
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_ours(s->list[i].name) == ours) {
            n++;
            bytes += s->list[i].bytes;
        }
    if (!n)
        return;
    text_label(t, ours ? "of training" : "weights");
    text_printf(t, "%zu, %s\n", n, bytes_text(arena, bytes));
    size_t shown = 0;
    for (size_t i = 0; i < s->n && (all || (!ours && shown < SOME)); i++) {
        if (is_ours(s->list[i].name) != ours)
            continue;
        shown++;
        text_label(t, "");
        text_escape(t, s->list[i].name, strlen(s->list[i].name), 200);
        text_printf(t, " %s\n", type_text(arena, s->list[i].type));
    }
    if (shown && shown < n) {
        text_label(t, "");
        text_printf(t, "and %zu more (-v)\n", n - shown);
    }
}

static bool is_checkpoint(const SafeTensors *s)
{
    return safetensors_metadata(s, "qcc.run") != NULL;
}

static void state_records(Text *t, const SafeTensors *s, Arena *arena, const char *file)
{
    log_record(t, "states", { "file", logged_text(file) }, { "checkpoint", logged_flag(is_checkpoint(s)) },
               { "tensors", logged_int((int64_t)s->n) }, { "bytes", logged_int((int64_t)s->from.size) });
    for (size_t i = 0; i < s->n_metadata; i++)
        log_record(t, "metadata", { "name", logged_text(s->metadata[i].key) },
                   { "value", logged_text(s->metadata[i].value) });
    for (size_t i = 0; i < s->n; i++)
        log_record(t, "tensor", { "name", logged_text(s->list[i].name) },
                   { "type", logged_text(type_text(arena, s->list[i].type)) },
                   { "bytes", logged_int((int64_t)s->list[i].bytes) },
                   { "of_training", logged_flag(is_ours(s->list[i].name)) });
}

Status explain_states(Command *c, const char *path)
{
    Text t;
    Types types;
    SafeTensors s;
    Arena *arena = &c->cx->scratch;
    const char *file = file_of(arena, path);
    const bool all = option_given(&c->line, OPT_verbose) > 0;
    types_open(&types, arena);
    TRY(safetensors_open(&s, &types, arena, &c->cx->diag, &c->cx->limits, file));
    text_open(&t, arena);
    if (out_is_json(c->out)) {
        state_records(&t, &s, arena, file);
        return out_objects(c->out, &t);
    }
    text_escape(&t, file, strlen(file), 400);
    text_printf(&t, "    %s, %zu tensor%s, %s\n", is_checkpoint(&s) ? "checkpoint" : "safetensors", s.n,
                s.n == 1 ? "" : "s", bytes_text(arena, s.from.size));
    tell_run(&t, &s);
    tell_metadata(&t, &s);
    tell_tensors(&t, &s, arena, false, all);
    tell_tensors(&t, &s, arena, true, all);
    return out_bytes(c->out, t.p, t.n);
}
