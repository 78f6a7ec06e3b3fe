/* The command under attack: calls on files fail, memory is refused, signals come and the process is ended, at each call
 * in turn, in every verb with an output.  Whatever happens, each file holds its old bytes or its new ones, files that
 * belong together agree, inputs are what they were, the exit code is one that is known and says why, and the next run
 * does all of it and leaves nothing over.
 *
 *     attacks QCC INTERPOSER some|many [WORD]     of the scenes whose name holds WORD
 *
 * Some places are attacked, drawn anew for each build; QCC_SWEEP=N draws those of the seed N, QCC_SWEEP=full takes all. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault/attack_laws.h"
#include "fault/attack_words.h"
#include "support/seed.h"

typedef struct Fault {
    Target target;
    Deed deed;
    int value;
    bool lasts; /* is also tried from then on */
} Fault;

/* clang-format off */
static const Fault faults[] = {
    { TARGET_open, DEED_FAIL, EACCES, true }, { TARGET_open, DEED_FAIL, EMFILE, true },
    { TARGET_open, DEED_FAIL, EIO, true }, { TARGET_open, DEED_FAIL, EINTR, false },
    { TARGET_create, DEED_FAIL, ENOSPC, true }, { TARGET_create, DEED_FAIL, EROFS, true },
    { TARGET_create, DEED_FAIL, EDQUOT, true }, { TARGET_create, DEED_FAIL, EMFILE, true },
    { TARGET_read, DEED_FAIL, EIO, true }, { TARGET_read, DEED_FAIL, EINTR, false },
    { TARGET_read, DEED_HALF, 0, true }, { TARGET_read, DEED_END, 0, true },
    { TARGET_write, DEED_FAIL, EIO, true }, { TARGET_write, DEED_FAIL, ENOSPC, true },
    { TARGET_write, DEED_FAIL, EDQUOT, true }, { TARGET_write, DEED_FAIL, EINTR, false },
    { TARGET_write, DEED_HALF, 0, true }, { TARGET_write, DEED_TEAR, 0, false },
    { TARGET_sync, DEED_FAIL, EIO, true }, { TARGET_sync, DEED_FAIL, ENOSPC, true },
    { TARGET_rename, DEED_FAIL, EACCES, true }, { TARGET_rename, DEED_FAIL, EIO, true },
    { TARGET_close, DEED_FAIL, EIO, true }, { TARGET_close, DEED_FAIL, EDQUOT, true },
    { TARGET_remove, DEED_FAIL, EACCES, true }, { TARGET_remove, DEED_FAIL, EROFS, true },
    { TARGET_reserve, DEED_FAIL, ENOSPC, true }, { TARGET_reserve, DEED_FAIL, EOPNOTSUPP, true },
    { TARGET_reserve, DEED_FAIL, EINTR, false },
    { TARGET_folder, DEED_FAIL, EACCES, true }, { TARGET_folder, DEED_FAIL, ENOSPC, true },
    { TARGET_link, DEED_FAIL, EPERM, true }, { TARGET_link, DEED_FAIL, ENOSPC, true },
    { TARGET_lock, DEED_FAIL, ENOLCK, true }, { TARGET_lock, DEED_FAIL, EINTR, false },
    { TARGET_look, DEED_FAIL, EACCES, true }, { TARGET_look, DEED_FAIL, EIO, true },
    { TARGET_truncate, DEED_FAIL, EIO, true },
    { TARGET_list, DEED_FAIL, EACCES, true }, { TARGET_list, DEED_FAIL, EIO, true },
    { TARGET_say, DEED_FAIL, EIO, true }, { TARGET_say, DEED_FAIL, ENOSPC, true },
    { TARGET_say, DEED_FAIL, EPIPE, true }, { TARGET_say, DEED_FAIL, EINTR, false },
    { TARGET_say, DEED_HALF, 0, true },
    { TARGET_memory, DEED_FAIL, ENOMEM, true },
    { TARGET_thread, DEED_FAIL, EAGAIN, true },
    { TARGET_any, DEED_FAIL, EIO, true },
    { TARGET_any, DEED_KILL, 0, false },
    { TARGET_any, DEED_SIGNAL, SIGTERM, true }, { TARGET_any, DEED_SIGNAL, SIGINT, false },
    { TARGET_any, DEED_SIGNAL, SIGHUP, false }, { TARGET_any, DEED_SIGNAL, SIGPIPE, false },
    { TARGET_any, DEED_SIGNAL, SIGXCPU, false }, { TARGET_any, DEED_SIGNAL, SIGUSR1, true },
};
/* clang-format on */
enum { INTERRUPTED = 130 };
enum { N_FAULTS = sizeof faults / sizeof *faults, MOST_SEEN = 4096 };

typedef struct Sweep {
    int each;         /* places of a fault in a scene */
    bool full, whole; /* every place of a fault; every scene */
    uint64_t seed;
    Reference reference;
    long done[TARGET_COUNT], kills, signals, runs, failed;
    uint64_t seen[MOST_SEEN]; /* what was left, and was made good by the next run */
    int n_seen;
} Sweep;

static const Attack no_attack = { .target = TARGET_COUNT };

static const char *target_word(Target t)
{
#define TEXT(name) #name,
    static const char *const words[] = { TARGETS(TEXT) };
#undef TEXT
    return words[t];
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- references ---- */

static void run_well(Sweep *s, const char *line, int code, Outcome *keep)
{
    Outcome o;
    attack_run(line, &no_attack, &o);
    s->runs++;
    if (o.code != code) {
        printf("qcc %s: exit %d\n%s", line, o.code, o.err);
        exit(2);
    }
    if (keep)
        *keep = o;
    else
        outcome_drop(&o);
}

static void run_lines(Sweep *s, const char *lines)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", lines ? lines : "");
    for (char *rest = NULL, *line = strtok_r(copy, ";", &rest); line; line = strtok_r(NULL, ";", &rest))
        run_well(s, line, 0, NULL);
}

/* What a set of files computes. */
static bool ask(Sweep *s, Entry *answer)
{
    Tree now;
    Outcome o;
    attack_run(s->reference.scene->probe, &no_attack, &o);
    s->runs++;
    tree_read(&now, ".");
    const Entry *e = tree_find(&now, "probe.npy");
    const bool good = o.code == 0 && e;
    if (good) {
        *answer = *e;
        answer->bytes = memcpy(malloc(e->n + 1), e->bytes, e->n + 1);
    }
    remove("probe.npy");
    tree_drop(&now);
    outcome_drop(&o);
    return good;
}

static void make_stop(Sweep *s, const char *line, const Attack *a)
{
    Outcome o;
    Reference *r = &s->reference;
    tree_write(&r->old, ".");
    attack_run(line, a, &o);
    s->runs++;
    tree_read(&r->stops[r->n_stops++], ".");
    outcome_drop(&o);
}

/* Whether a run saved states or a model. */
static bool has_saved(const Reference *r, const Tree *now)
{
    bool has = false;
    for (int i = 0; !has && i < now->n; i++) {
        const Entry *e = &now->list[i], *old = tree_find(&r->old, e->name);
        has = (strstr(e->name, ".safetensors") || strstr(e->name, ".onnx")) && !(old && entry_same(old, e));
    }
    return has;
}

/* A training that is asked to end before its first step: by a signal at the first call behind which it saves something. */
static void make_first_stop(Sweep *s)
{
    Reference *r = &s->reference;
    Attack a = { .target = TARGET_any, .deed = DEED_SIGNAL, .value = SIGTERM };
    for (long low = 0, high = r->outcome.attack.seen[TARGET_any]; high - low > 1;) {
        a.at = low + (high - low) / 2;
        make_stop(s, r->scene->command, &a);
        const bool saved = has_saved(r, &r->stops[--r->n_stops]);
        tree_drop(&r->stops[r->n_stops]);
        *(saved ? &high : &low) = a.at;
        a.at = high;
    }
    make_stop(s, r->scene->command, &a);
}

/* A training that stops behind each step, and before the first; and one whose output cannot get its name, so that the
 * states go where those of a run without outputs are. */
static void make_stops(Sweep *s)
{
    const Attack elsewhere = { .target = TARGET_rename, .deed = DEED_FAIL, .value = EACCES, .at = 1 };
    const Scene *scene = s->reference.scene;
    if (scene->steps)
        make_first_stop(s);
    for (int i = 1; i <= scene->steps; i++) {
        char line[1024];
        snprintf(line, sizeof line, "%s --stop-if step>%d.5", scene->command, i - 1);
        make_stop(s, line, &no_attack);
        make_stop(s, line, &elsewhere);
    }
}

static void make_reference(Sweep *s, const Scene *scene, const Tree *inputs)
{
    Reference *r = &s->reference;
    *r = (Reference){ .scene = scene };
    tree_write(inputs, ".");
    run_lines(s, scene->before);
    tree_read(&r->old, ".");
    if (scene->probe && !ask(s, &r->probe_old))
        printf("%s: no answer before\n", scene->name), s->failed++;
    run_well(s, scene->command, scene->code, &r->outcome);
    tree_read(&r->new, ".");
    if (scene->probe && !ask(s, &r->probe_new))
        printf("%s: no answer behind\n", scene->name), s->failed++;
    make_stops(s);
    tree_write(&r->old, ".");
    s->n_seen = 0;
}

static void drop_reference(Reference *r)
{
    tree_drop(&r->old);
    tree_drop(&r->new);
    for (int i = 0; i < r->n_stops; i++)
        tree_drop(&r->stops[i]);
    outcome_drop(&r->outcome);
    free(r->probe_old.bytes);
    free(r->probe_new.bytes);
}

/* ---- one attack ---- */

static void tell(Sweep *s, const Attack *a, const char *wrong, const Outcome *o)
{
    static const char *const deeds[] = { "", "fails", "does half", "ends", "tears", "kills", "signals" };
    s->failed++;
    printf("%s: %s %ld%s %s", s->reference.scene->name, target_word(a->target), a->at,
           a->from_then_on ? " and all behind" : "", deeds[a->deed]);
    printf(a->deed == DEED_FAIL     ? " (%s)"
           : a->deed == DEED_SIGNAL ? " (%s)"
                                    : "%s",
           a->deed == DEED_FAIL     ? strerrorname_np(a->value)
           : a->deed == DEED_SIGNAL ? sigabbrev_np(a->value)
                                    : "");
    printf(": %s\n", wrong);
    if (o && o->err[0])
        printf("    said: %.*s\n", (int)strcspn(o->err, "\n"), o->err);
}

/* Files that belong together compute what the old ones did, or the new ones. */
static const char *law_of_sets(Sweep *s, const Tree *now)
{
    Entry e;
    const Reference *r = &s->reference;
    if (!law_of_sets_is_open(r, now))
        return NULL;
    if (!ask(s, &e))
        return "the files that belong together cannot be read";
    const bool good = entry_same(&e, &r->probe_old) || entry_same(&e, &r->probe_new);
    free(e.bytes);
    return good ? NULL : "the files that belong together are a mixture";
}

/* The next run does all that this one did not, and clears what it left. */
static const char *law_of_return(Sweep *s, const Outcome *first, const Tree *left)
{
    Tree now;
    Outcome o;
    char said[8192];
    const Allowed allowed = { .unjudged = true, .cut = true, .dangling = true }; /* by the run before */
    const Reference *r = &s->reference;
    const uint64_t hash = tree_hash(left);
    for (int i = 0; i < s->n_seen; i++)
        if (s->seen[i] == hash)
            return NULL;
    attack_run(r->scene->again ? r->scene->again : r->scene->command, &no_attack, &o);
    s->runs++;
    tree_read(&now, ".");
    const char *wrong = o.code == r->scene->code ? law_of_files(r, &now, &allowed) : "the next run fails";
    snprintf(said, sizeof said, "%s%s", first->err, o.err);
    if (!wrong)
        wrong = law_of_success(r, &now, said, true);
    if (!wrong && s->n_seen < MOST_SEEN)
        s->seen[s->n_seen++] = hash;
    tree_drop(&now);
    outcome_drop(&o);
    return wrong;
}

static Allowed allowed_by(const Attack *a, const Outcome *o)
{
    const bool signal = a->deed == DEED_SIGNAL, dying = a->target == TARGET_any && a->deed == DEED_FAIL;
    return (Allowed){
        .left = o->ended || dying || (signal && a->from_then_on) || a->target == TARGET_remove,
        .torn = o->ended || dying || a->deed == DEED_TEAR || a->target == TARGET_write || a->target == TARGET_truncate,
        .dangling = strstr(o->err, "cannot be made to point to") != NULL,
        .unjudged = o->code == INTERRUPTED || strstr(o->err, " is not saved"),
    };
}

/* Whether it is said that checkpoints stay that should have gone. */
static bool says_old(const Outcome *o)
{
    return strstr(o->err, " is old and cannot be removed") || strstr(o->err, "old checkpoints stay");
}

/* Words differ where a run says why: a checkpoint could not be read, saved or removed, or what was said first is an
 * error. */
static bool says_the_same(const Reference *r, const Attack *a, const Outcome *o)
{
    if (a->deed == DEED_SIGNAL || (r->scene->code && o->err[0]) || strcmp(o->out, r->outcome.out) == 0)
        return true;
    return strstr(o->err, ": passed over for ") || strstr(o->err, " is not saved") || says_old(o);
}

static bool is_old(const Reference *r, const Entry *e)
{
    return strstr(e->name, "/step-") && !strstr(e->name, ".tmp-") && !tree_find(&r->new, e->name);
}

/* Checkpoints that should have gone do not stay without a word. */
static const char *law_of_old(const Reference *r, const Attack *a, const Outcome *o, const Tree *now)
{
    for (int i = 0; a->target == TARGET_remove && i < now->n; i++)
        if (is_old(r, &now->list[i]) && !says_old(o))
            return "an old checkpoint stays without a word";
    return NULL;
}

static const char *judge(Sweep *s, const Attack *a, const Outcome *o, const Tree *now)
{
    const Reference *r = &s->reference;
    const Allowed allowed = allowed_by(a, o);
    const char *wrong = law_of_ending(r, o);
    if (!wrong)
        wrong = law_of_files(r, now, &allowed);
    if (!wrong && !o->ended && o->code == r->scene->code) {
        wrong = law_of_success(r, now, o->err, false);
        if (!wrong)
            wrong = law_of_old(r, a, o, now);
        if (!wrong && !says_the_same(r, a, o))
            wrong = "says something else";
    }
    if (!wrong)
        wrong = law_of_sets(s, now);
    return wrong;
}

static void attack_once(Sweep *s, const Attack *a)
{
    Tree now;
    Outcome o;
    const Reference *r = &s->reference;
    attack_run(r->scene->command, a, &o);
    s->runs++;
    if (o.attack.struck) {
        s->done[a->target]++;
        s->kills += a->deed == DEED_KILL || a->deed == DEED_TEAR;
        s->signals += a->deed == DEED_SIGNAL;
    }
    tree_read(&now, ".");
    const char *wrong = judge(s, a, &o, &now);
    if (wrong)
        tell(s, a, wrong, &o);
    const bool changed = !tree_same(&now, &r->old);
    if (changed && !wrong && (wrong = law_of_return(s, &o, &now)))
        tell(s, a, wrong, NULL);
    if (changed)
        tree_write(&r->old, ".");
    tree_drop(&now);
    outcome_drop(&o);
}

/* ---- all of them ---- */

static void attack_with(Sweep *s, const Fault *f, uint64_t *state)
{
    const long n = s->reference.outcome.attack.seen[f->target];
    const long step = s->full || n <= s->each ? 1 : n / s->each;
    const int only =
        s->each > 1 || s->full || !f->lasts ? -1 : (int)(draw(state) % 2); /* of both ways, when there is little time */
    for (int lasting = 0; lasting <= f->lasts; lasting++)
        for (long at = 1 + (long)(draw(state) % (uint64_t)step); at <= n && (only < 0 || lasting == only); at += step) {
            const Attack a = {
                .target = f->target, .deed = f->deed, .value = f->value, .from_then_on = lasting, .at = at
            };
            attack_once(s, &a);
        }
}

static uint64_t seed_of_fault(const Sweep *s, const Scene *scene, const Fault *f)
{
    char name[128];
    snprintf(name, sizeof name, "%s: %s %d %d", scene->name, target_word(f->target), (int)f->deed, f->value);
    return seed_of(name, s->seed);
}

static void attack_scene(Sweep *s, const Scene *scene, const Tree *inputs)
{
    const long runs = s->runs;
    make_reference(s, scene, inputs);
    for (int i = 0; i < N_FAULTS; i++) {
        uint64_t state = seed_of_fault(s, scene, &faults[i]);
        if (s->reference.outcome.attack.seen[faults[i].target])
            attack_with(s, &faults[i], &state);
    }
    drop_reference(&s->reference);
    printf("%-20s %5ld runs\n", scene->name, s->runs - runs);
}

static uint64_t seed_of_program(const char *program)
{
    uint64_t seed = 7;
    unsigned char bytes[4096];
    FILE *f = fopen(program, "rb");
    for (size_t n; f && (n = fread(bytes, 1, sizeof bytes, f)) > 0;)
        for (size_t i = 0; i < n; i++)
            seed = (seed ^ bytes[i]) * 1099511628211u;
    if (f)
        fclose(f);
    return seed % 1000000;
}

static int finish(Sweep *s)
{
    long all = 0;
    printf("seed %llu:", (unsigned long long)s->seed);
    for (int t = 0; t < TARGET_COUNT; t++) {
        all += s->done[t];
        printf(" %ld %s,", s->done[t], target_word((Target)t));
        s->failed += s->whole && !s->done[t];
    }
    printf(" %ld kills, %ld signals among them\n", s->kills, s->signals);
    printf("%ld attacks, %ld runs, %ld failed\n", all, s->runs, s->failed);
    return s->failed != 0;
}

int main(int argc, char **argv)
{
    static Sweep s;
    static Tree inputs;
    if (argc < 4)
        return 2;
    const char *how = getenv("QCC_SWEEP"), *word = argc > 4 ? argv[4] : "";
    s.whole = !*word;
    s.full = how && strcmp(how, "full") == 0;
    s.each = strcmp(argv[3], "many") == 0 ? 20 : 1;
    s.seed = how && !s.full ? strtoull(how, NULL, 10) : seed_of_program(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    attack_begin(argv[1], argv[2]);
    attack_write_inputs();
    for (const char *const *line = attack_inputs; *line; line++)
        run_well(&s, *line, 0, NULL);
    tree_read(&inputs, ".");
    if (!*word)
        s.failed += attack_words();
    for (int i = 0; i < n_attack_scenes; i++)
        if (strstr(attack_scenes[i].name, word))
            attack_scene(&s, &attack_scenes[i], &inputs);
    tree_drop(&inputs);
    attack_finish();
    return finish(&s);
}
