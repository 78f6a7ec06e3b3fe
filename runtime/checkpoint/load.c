#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "ops/update/scaler.h"
#include "runtime/checkpoint/content.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/checkpoint/match.h"
#include "runtime/checkpoint/option_words.h"
#include "runtime/checkpoint/probe.h"

enum { CHUNK = 1 << 18 };

/* ---- which file ---- */

/* The candidates of a path, best first. */
typedef struct Candidates {
    const char **paths;
    uint64_t *steps; /* what the name says; UINT64_MAX: nothing */
    size_t n;
    bool is_folder;
} Candidates;

static const char *run_of_link(const CheckpointReader *r, const char *folder)
{
    Probe p;
    const char *last = folder_link(r->arena, folder, "last");
    if (!last)
        return NULL;
    probe_open(&p, r->types, r->arena, r->limits, file_in(r->arena, folder, last));
    return p.damage ? NULL : p.info.run;
}

/* Where several runs share a folder, the one that saved last comes first; a file that says nothing of its run counts
 * as of that run: it is damaged, and worth a word. */
static bool is_of_run(const CheckpointReader *r, const char *path, const char *run)
{
    Probe p;
    if (!run)
        return true;
    probe_open(&p, r->types, r->arena, r->limits, path);
    return p.damage || strcmp(p.info.run, run) == 0;
}

static Status list_folder(const CheckpointReader *r, const char *folder, Candidates *c)
{
    CheckpointFile *list;
    size_t n;
    TRY(folder_list(r->arena, r->diag, folder, &list, &n));
    c->is_folder = true;
    c->paths = NEWS(r->arena, const char *, n);
    c->steps = NEWS(r->arena, uint64_t, n);
    bool *later = NEWS(r->arena, bool, n);
    const char *run = run_of_link(r, folder);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const char *path = file_in(r->arena, folder, list[i].name);
            if (pass == 0)
                later[i] = !is_of_run(r, path, run);
            if (later[i] == (pass == 1)) {
                c->paths[c->n] = path;
                c->steps[c->n++] = list[i].step;
            }
        }
    }
    return OK;
}

static Status find_candidates(const CheckpointReader *r, const char *path, Candidates *c)
{
    struct stat st;
    *c = (Candidates){ 0 };
    if (stat(path, &st) != 0)
        return errno == ENOENT ? OK : file_failed(r->diag, path, "cannot be read", errno);
    if (S_ISDIR(st.st_mode))
        return list_folder(r, path, c);
    c->paths = NEWS(r->arena, const char *, 1);
    c->steps = NEWS(r->arena, uint64_t, 1);
    c->paths[0] = path;
    c->steps[0] = UINT64_MAX;
    c->n = 1;
    return OK;
}

/* ---- one file ---- */

static Status refuse(const CheckpointReader *r, const Probe *p, const char *what, const char *got, const char *want)
{
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = p->path, .byte = -1 },
                             "%s: %s, %s wanted", what, got ? got : "none", want);
    if (p->info.options)
        message_at(m, "saved by a run with %s", p->info.options);
    return message_send(m);
}

/* States that are there, but kept otherwise. */
static void try_converting(Message *m, const CheckpointWanted *w, const StateReport *report)
{
    const bool states = report->n_other_states, weights = report->n_other_weights;
    if (w->converts && (states || weights))
        message_try(m, "--convert %s, which takes what the codes of the checkpoint stand for",
                    !weights ? "states"
                    : states ? "all"
                             : "weights");
}

static Status refuse_options(const CheckpointReader *r, const Probe *p, const CheckpointWanted *w,
                             const StateReport *report)
{
    const char *options = w->options;
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = p->path, .byte = -1 },
                             "was saved by a step compiled with other options");
    message_at(m, "then  %s", p->info.options);
    message_at(m, "now   %s", options);
    const char *more = options_without(r->arena, options, p->info.options),
               *lacking = options_without(r->arena, p->info.options, options);
    if (*more)
        message_try(m, "without %s%s%s", more, *lacking ? ", with " : "", lacking);
    else
        message_try(m, "with %s", *lacking ? lacking : p->info.options);
    try_converting(m, w, report);
    return message_send(m);
}

/* The options are the same, word for word: tables, a teacher and other files that they name count by content. */
static Status refuse_files(const CheckpointReader *r, const Probe *p)
{
    Message *m =
        message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = p->path, .byte = -1 },
                    "was saved by another step with the same options: a file that they name has changed, or qcc has");
    message_at(m, "both  %s", p->info.options);
    return message_send(m);
}

/* A few names tell which model it is; more would hide that. */
static void some_of(Message *m, const char *form, const char *const *names, size_t n, const char *others)
{
    enum { FEW = 3 };
    const size_t shown = n > FEW + 1 ? FEW : n;
    const char *s = strstr(form, "%s") + 2;
    for (size_t i = 0; i < shown; i++)
        message_at(m, "%s%s", names[i], s);
    if (n > shown)
        message_at(m, "%zu %s", n - shown, others);
}

static Status refuse_misfit(const CheckpointReader *r, const Probe *p, const char *why, const CheckpointWanted *w,
                            const StateReport *report)
{
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = p->path, .byte = -1 },
                             "%s: %zu states match, %zu are missing, %zu unexpected, %zu misshapen", why,
                             report->n_matched, report->n_missing, report->n_unexpected, report->n_misshapen);
    some_of(m, "%s", report->misshapen, report->n_misshapen, "others have other shapes");
    some_of(m, "%s is missing", report->missing, report->n_missing, "others are missing");
    some_of(m, "%s is unexpected", report->unexpected, report->n_unexpected, "others are unexpected");
    message_try(m, "--init %s to take the weights alone", p->path);
    try_converting(m, w, report);
    return message_send(m);
}

static bool is_slot_of_scale(const CheckpointWanted *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->slots[i].name == name)
            return w->slots[i].mark.role == STATE_scaler;
    return false;
}

/* States of the scale of a loss that the file lacks: not missed where they may begin anew. */
static Status check_scale(const CheckpointReader *r, const Probe *p, const CheckpointWanted *w, StateReport *report)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_missing; i++)
        if (!is_slot_of_scale(w, report->missing[i]))
            report->missing[n++] = report->missing[i];
    const bool lacks = n < report->n_missing;
    report->n_missing = n;
    if (!lacks || w->fresh_scale)
        return OK;
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = p->path, .byte = -1 },
                             "has no state of a loss scale: it was saved by a run without one");
    message_try(m, "--loss-scale dynamic:fresh=true to begin a scale here, or --loss-scale off");
    return message_send(m);
}

static bool differ(const char *got, const char *want)
{
    return want && (!got || strcmp(got, want) != 0);
}

/* What differs is named: states of the model, else the options, else what identifies them. */
static Status check_wanted(const CheckpointReader *r, const Probe *p, const CheckpointWanted *w, StateReport *report,
                           int64_t **to)
{
    const bool model = differ(p->info.model_hash, w->model_hash), step = differ(p->info.step_hash, w->step_hash);
    *to = match_slots(r->arena, &p->table, w->slots, w->n, false, report);
    if (model && report->model_differs)
        return refuse_misfit(r, p, "was saved by a run of another model", w, report);
    if ((model || step) && w->options && p->info.options && strcmp(w->options, p->info.options) != 0)
        return refuse_options(r, p, w, report);
    if (model)
        return refuse(r, p, "was saved by a run of another model", p->info.model_hash, w->model_hash);
    if (step && w->options && p->info.options)
        return refuse_files(r, p);
    if (step)
        return refuse(r, p, "was saved by a step compiled with other options", p->info.step_hash, w->step_hash);
    TRY(check_scale(r, p, w, report));
    if (report->n_missing || report->n_misshapen || (report->n_unexpected && !w->others))
        return refuse_misfit(r, p, "does not fit this step", w, report);
    return OK;
}

/* One pass over the file: tensors that are wanted into their places, all bytes into the hash. */
static Status read_tensor(const CheckpointReader *r, Probe *p, const SafeTensor *t, const StateSlot *slot, Sha256 *sha,
                          char *chunk, Tensor **state)
{
    if (slot) {
        *state = tensor_alloc(r->heap, slot->type);
        TRY(safetensors_read(&p->table, &p->quiet, t, (*state)->data));
        sha256_add(sha, (*state)->data, t->bytes);
        return OK;
    }
    for (size_t done = 0; done < t->bytes;) {
        const size_t n = t->bytes - done < CHUNK ? t->bytes - done : CHUNK;
        TRY(safetensors_bytes(&p->table, &p->quiet, t->at + done, chunk, n));
        sha256_add(sha, chunk, n);
        done += n;
    }
    return OK;
}

static void drop_states(const CheckpointReader *r, Tensor **states, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tensor_drop(r->heap, states[i]);
        states[i] = NULL;
    }
}

/* Fills the states and hashes what is read. */
static void read_and_hash(const CheckpointReader *r, Probe *p, const CheckpointWanted *w, const int64_t *to,
                          Tensor **states, char *head, char *chunk)
{
    char hex[SHA256_TEXT];
    uint8_t digest[SHA256_BYTES];
    Sha256 sha;
    const uint64_t n = probe_head(p);
    const char *stored = safetensors_metadata(&p->table, CHECKPOINT_HASH);
    if (safetensors_bytes(&p->table, &p->quiet, 0, head, n) == OK && (!stored || !content_begin(&sha, head, n)))
        p->damage = "has no " CHECKPOINT_HASH;
    for (size_t i = 0; i < p->table.n && !p->damage; i++)
        if (read_tensor(r, p, &p->table.list[i], to[i] < 0 ? NULL : &w->slots[to[i]], &sha, chunk,
                        to[i] < 0 ? NULL : &states[to[i]]) != OK &&
            !p->damage)
            p->damage = "cannot be read";
    if (p->damage)
        return;
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    if (strcmp(hex, stored) != 0)
        p->damage = "its bytes are not those that were written (sha256 differs)";
}

/* Where the file turns out damaged nothing is left of it. */
static void read_states(const CheckpointReader *r, Probe *p, const CheckpointWanted *w, const int64_t *to,
                        Tensor **states)
{
    char *head = heap_alloc(r->heap, probe_head(p)), *chunk = heap_alloc(r->heap, CHUNK);
    read_and_hash(r, p, w, to, states, head, chunk);
    heap_free(r->heap, chunk);
    heap_free(r->heap, head);
    if (p->damage)
        drop_states(r, states, w->n);
}

static void check_step(const CheckpointReader *r, Probe *p, uint64_t named)
{
    if (!p->damage && named != UINT64_MAX && named != p->info.step)
        p->damage = arena_printf(r->arena, "its name says step %" PRIu64 ", it says %" PRIu64, named, p->info.step);
}

/* Slots for what is kept without one, behind those that are wanted. */
static CheckpointWanted with_kept(const CheckpointReader *r, const Probe *p, const CheckpointWanted *w, int64_t *to,
                                  CheckpointLoaded *loaded)
{
    enum { MOST = 2 }; /* scale and counters */
    CheckpointWanted all = *w;
    StateSlot *slots = NEWS(r->arena, StateSlot, w->n + MOST);
    if (w->n)
        memcpy(slots, w->slots, w->n * sizeof *slots);
    loaded->kept = NEWS(r->arena, NamedTensor, MOST);
    for (size_t i = 0; i < p->table.n && loaded->n_kept < MOST; i++) {
        const SafeTensor *t = &p->table.list[i];
        if (to[i] >= 0 || !match_is_scale(t->name))
            continue;
        const char *name = arena_string(r->arena, t->name);
        to[i] = (int64_t)all.n;
        slots[all.n++] = (StateSlot){ .name = name, .type = t->type };
        loaded->kept[loaded->n_kept++] = (NamedTensor){ name, NULL };
    }
    all.slots = slots;
    return all;
}

/* What was read as kept, and the counters that we know out of a longer vector. */
static void settle_kept(const CheckpointReader *r, const CheckpointWanted *w, CheckpointLoaded *loaded)
{
    for (size_t k = 0; k < loaded->n_kept; k++) {
        Tensor *t = loaded->states[w->n + k];
        loaded->kept[k].tensor = t;
        for (size_t i = 0; i < w->n; i++) {
            if (strcmp(w->slots[i].name, loaded->kept[k].name) != 0 || loaded->states[i])
                continue;
            loaded->states[i] = tensor_alloc(r->heap, w->slots[i].type);
            bytes_copy(loaded->states[i]->data, t->data, loaded->states[i]->bytes);
        }
    }
}

/* A scale of 0, or one that is no power of two, would spoil every gradient. */
static Status check_value(const CheckpointReader *r, const Probe *p, const CheckpointWanted *w, Tensor *const *states)
{
    for (size_t i = 0; i < w->n; i++)
        if (states[i] && w->slots[i].mark.role == STATE_scaler && !w->slots[i].mark.of &&
            states[i]->type->dtype == F32 && states[i]->type->rank == 0 &&
            !scaler_is_scale(*(const float *)states[i]->data))
            return fail_as(r->diag, INVALID, (Place){ .file = p->path, .byte = -1 }, "%s: %g is no power of two",
                           w->slots[i].name, tensor_get_f64(states[i], 0));
    return OK;
}

static Status load_one(const CheckpointReader *r, Probe *p, const CheckpointWanted *w, CheckpointLoaded *loaded)
{
    int64_t *to = NULL;
    if (p->damage)
        return OK;
    TRY(check_wanted(r, p, w, &loaded->report, &to));
    loaded->n_kept = 0;
    const CheckpointWanted all = with_kept(r, p, w, to, loaded);
    loaded->states = NEWS(r->arena, Tensor *, all.n + 1);
    read_states(r, p, &all, to, loaded->states);
    if (!p->damage) {
        TRY(check_value(r, p, &all, loaded->states));
        settle_kept(r, w, loaded);
        loaded->file = p->path;
        loaded->info = p->info;
    }
    return OK;
}

/* ---- all of them ---- */

static Status none_whole(const CheckpointReader *r, const char *path, const Candidates *c, const char *const *damages,
                         Status why)
{
    if (!c->is_folder)
        return fail_as(r->diag, why, (Place){ .file = c->paths[0], .byte = -1 }, "%s", damages[0]);
    Message *m = message_new(r->diag, SEVERITY_ERROR, why, (Place){ .file = path, .byte = -1 },
                             why == IO ? "none of its %zu checkpoints can be read and is whole"
                                       : "none of its %zu checkpoints is whole",
                             c->n);
    for (size_t i = 0; i < c->n; i++)
        message_at(m, "%s: %s", c->paths[i], damages[i]);
    return message_send(m);
}

Status checkpoint_load(const CheckpointReader *r, const char *path, const CheckpointWanted *wanted,
                       CheckpointLoaded *loaded)
{
    Candidates c;
    Status why = INVALID;
    *loaded = (CheckpointLoaded){ 0 };
    TRY(find_candidates(r, path, &c));
    const char **damages = NEWS(r->arena, const char *, c.n);
    Probe *p = NEW(r->arena, Probe);
    for (size_t i = 0; i < c.n; i++) {
        probe_open(p, r->types, r->arena, r->limits, c.paths[i]);
        check_step(r, p, c.steps[i]);
        TRY(load_one(r, p, wanted, loaded));
        damages[i] = p->damage;
        why = p->unread ? IO : why;
        if (loaded->file) {
            for (size_t k = 0; k < i; k++)
                TRY(warn(r->diag, (Place){ .file = c.paths[k], .byte = -1 }, "%s: passed over for %s", damages[k],
                         c.paths[i]));
            return OK;
        }
    }
    return c.n ? none_whole(r, path, &c, damages, why) : OK;
}

Status checkpoint_get(const CheckpointReader *r, const SafeBytes *from, const CheckpointWanted *wanted,
                      CheckpointLoaded *loaded)
{
    Probe *p = NEW(r->arena, Probe);
    *loaded = (CheckpointLoaded){ 0 };
    probe_open_bytes(p, r->types, r->arena, r->limits, from);
    TRY(load_one(r, p, wanted, loaded));
    if (!p->damage)
        return OK;
    return fail_as(r->diag, p->unread ? IO : INVALID, (Place){ .file = from->name, .byte = -1 }, "%s", p->damage);
}
