/* Memory that runs out in every call of the library: the n-th request refused, or that one and all that follow, or one of
 * the C library's own.  Each time the answer is a status, a call that failed has changed nothing and kept nothing, what
 * another context does goes on, and afterwards everything works.
 *
 * usage: calls FOLDER some|many MODEL...
 * QCC_SWEEP_OFFSET is a number, in hex, that says at which requests sparse sweeps look; many looks at more of them. */
#include "api/hall/context.h"
#include "fault/refuse_malloc.h"
#include "fault/world.h"

/* Who refuses. */
typedef enum Mode { MODE_ONCE, MODE_LASTS, MODE_MALLOC_ONCE, MODE_MALLOC_LASTS, MODES } Mode;

static const char *const mode_names[] = { "once", "from then on", "malloc once", "malloc from then on" };

typedef struct Sweep {
    World *w;
    World *bystander;             /* another context of the process */
    size_t dense, sparse, offset; /* all of the first; then each step is the n-th part of what is behind */
    size_t trials, refused, bad;
} Sweep;

static void refuse(World *w, Mode mode, size_t n)
{
    if (mode < MODE_MALLOC_ONCE)
        host_refuse(&w->host, n, mode == MODE_LASTS);
    else
        malloc_refuse(n, mode == MODE_MALLOC_LASTS);
}

/* How many requests were refused. */
static size_t serve(World *w, Mode mode, size_t before)
{
    host_serve(&w->host);
    return mode < MODE_MALLOC_ONCE ? w->host.refused - before : malloc_serve();
}

static bool complain(Sweep *s, const Verb *verb, Mode mode, size_t n, qcc_status status, const char *what)
{
    printf("%s, %s, %s after %zu: %s: %s: %s\n", s->w->file ? s->w->file : "text", verb->name, mode_names[mode], n,
           qcc_status_name(status), what, s->w->host.text);
    s->bad++;
    return false;
}

/* A session that is the same before and after is told by its bytes. */
static bool settle(Sweep *s, const Verb *verb, Mode mode, size_t n, qcc_status status, uint64_t before, size_t bytes)
{
    World *w = s->w;
    if (status != QCC_OK && verb->runs) {
        if (world_restart(w) != QCC_OK)
            return complain(s, verb, mode, n, status, "sessions cannot be started again");
        return true;
    }
    if (status != QCC_OK && world_state(w) != before)
        return complain(s, verb, mode, n, status, "the session has changed");
    if (status != QCC_OK && w->host.bytes > bytes) { /* results of a run before may go */
        printf("%zu bytes before, %zu after\n", bytes, w->host.bytes);
        return complain(s, verb, mode, n, status, "something was kept");
    }
    return true;
}

/* One call with one refusal; false when none was refused any more. */
static bool trial(Sweep *s, const Verb *verb, Mode mode, size_t n)
{
    World *w = s->w;
    char mark[32];
    snprintf(mark, sizeof mark, "%08zu", s->trials++ % 100000000);
    if (qcc_set_property(w->session, "mark", mark) != QCC_OK)
        return complain(s, verb, mode, n, QCC_OK, "a property cannot be set");
    if (verb->before && verb->before(w) != QCC_OK)
        return complain(s, verb, mode, n, QCC_OK, "what it needs fails");
    const uint64_t state = world_state(w);
    const size_t bytes = w->host.bytes, before = w->host.refused, open = host_descriptors();
    refuse(w, mode, n);
    const qcc_status status = verb->run(w);
    const size_t refused = serve(w, mode, before);
    s->refused += refused;
    if (status != QCC_OK && !refused)
        return complain(s, verb, mode, n, status, "nothing was refused");
    if (status != QCC_OK && status != QCC_NO_MEMORY && mode < MODE_MALLOC_ONCE)
        return complain(s, verb, mode, n, status, "another answer");
    if (host_descriptors() != open)
        return complain(s, verb, mode, n, status, "a descriptor stays open");
    if (w->host.broken)
        return complain(s, verb, mode, n, status, "a block came back broken");
    if (!settle(s, verb, mode, n, status, state, bytes))
        return false;
    if (s->trials % 64 == 0 && qcc_run(s->bystander->session, QCC_STEP, NULL) != QCC_OK)
        return complain(s, verb, mode, n, status, "another context was disturbed");
    return refused != 0;
}

static size_t step_after(const Sweep *s, size_t n)
{
    return n < s->dense ? 1 : n / s->sparse + 1;
}

static void sweep_verb(Sweep *s, const Verb *verb)
{
    for (int warm = 0; warm < 3; warm++)
        if ((verb->before && verb->before(s->w) != QCC_OK) || verb->run(s->w) != QCC_OK)
            complain(s, verb, MODE_ONCE, 0, QCC_OK, "fails by itself");
    for (Mode mode = 0; mode < MODES; mode++) {
        if (mode >= MODE_MALLOC_ONCE && !malloc_may_be_refused())
            break;
        bool more = true;
        for (size_t n = 0; more; n += step_after(s, n)) {
            if (n >= s->dense && n < s->dense + 2)
                n += s->offset % (s->dense / s->sparse + 1);
            more = trial(s, verb, mode, n);
        }
    }
    if ((verb->before && verb->before(s->w) != QCC_OK) || verb->run(s->w) != QCC_OK)
        complain(s, verb, MODE_ONCE, 0, QCC_OK, "does not work afterwards");
}

/* No request of an arena hides in a chunk: each may fail, and what is kept shows. */
static void set_apart(qcc_context *context)
{
    context->memory.apart = true;
}

static void sweep(Sweep *s, const char *file, const char *options)
{
    const Host fresh = { 0 };
    World *w = s->w;
    w->host = fresh;
    w->file = file;
    w->options = options;
    w->opened = set_apart;
    if (world_open(w) != QCC_OK) {
        printf("%s: %s\n", file ? file : "text", w->host.text);
        s->bad++;
        return;
    }
    for (size_t v = 0; v < world_n_verbs; v++)
        sweep_verb(s, &world_verbs[v]);
    if (!world_close(w)) {
        printf("%s: %zu blocks are left\n", file ? file : "text", w->host.blocks);
        s->bad++;
    }
}

int main(int argc, char **argv)
{
    static World w, bystander;
    const char *offset = getenv("QCC_SWEEP_OFFSET");
    if (argc < 3)
        return 2;
    const bool many = strcmp(argv[2], "many") == 0;
    Sweep s = { .w = &w,
                .bystander = &bystander,
                .dense = many ? 400 : 24,
                .sparse = many ? 50 : 3,
                .offset = offset ? strtoul(offset, NULL, 16) : 0 };
    w.folder = bystander.folder = argv[1];
    bystander.options = WORLD_TEXT_OPTIONS;
    if (world_open(&bystander) != QCC_OK)
        return 2;
    sweep(&s, NULL, WORLD_TEXT_OPTIONS " --amp fp16");
    for (int i = 3; i < argc; i++)
        sweep(&s, argv[i], "--optimizer sgd:lr=1e-2");
    s.bad += !world_close(&bystander);
    printf("offset %zx: %zu trials, %zu requests refused, %zu bad%s\n", s.offset, s.trials, s.refused, s.bad,
           malloc_may_be_refused() ? "" : "; malloc is the sanitizer's and was not refused");
    return s.bad || s.trials < 500;
}
