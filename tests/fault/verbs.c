/* Memory that runs out in every verb of the command, run by a host: the n-th request refused, or that one and all that
 * follow, or one of the C library's own.  Each time the answer is a status, the context keeps nothing, no file is left half
 * written, what was there before is whole, and the same line works afterwards.
 *
 * usage: verbs FOLDER TESTS some|many (QCC_SWEEP_OFFSET as for calls.c) */
#include "api/hall/context.h"
#include "fault/commands.h"
#include "fault/refuse_malloc.h"

/* Who refuses. */
typedef enum Mode { MODE_ONCE, MODE_LASTS, MODE_MALLOC, MODES } Mode;

static const char *const mode_names[] = { "once", "from then on", "malloc from then on" };

typedef struct Sweep {
    World *w;
    const char *tests;
    size_t dense, factor, offset, trials, refused, bad;
} Sweep;

static bool complain(Sweep *s, const CommandText *c, Mode mode, size_t n, qcc_status status, const char *what)
{
    printf("qcc %s\n  %s after %zu: %s: %s: %s\n", c->text, mode_names[mode], n, qcc_status_name(status), what,
           s->w->host.text);
    s->bad++;
    return false;
}

/* One line with one refusal; false when none was refused any more. */
static bool trial(Sweep *s, const CommandText *c, Mode mode, size_t n)
{
    World *w = s->w;
    const size_t bytes = w->host.bytes, blocks = w->host.blocks, before = w->host.refused, open = host_descriptors();
    if (mode == MODE_MALLOC)
        malloc_refuse(n, true);
    else
        host_refuse(&w->host, n, mode == MODE_LASTS);
    w->host.errors = 0;
    const qcc_status status = command_do(w, s->tests, c);
    host_serve(&w->host);
    const size_t refused = mode == MODE_MALLOC ? malloc_serve() : w->host.refused - before;
    s->trials++;
    s->refused += refused;
    const bool meant = status == QCC_NO_MEMORY || (c->also && status == c->also);
    if (status != c->wanted && (!refused || (mode != MODE_MALLOC && !meant)))
        return complain(s, c, mode, n, status, "another answer");
    if (status != c->wanted && status != c->also && !w->host.errors)
        return complain(s, c, mode, n, status, "nothing was said");
    if (w->host.bytes != bytes || w->host.blocks != blocks || w->host.broken)
        return complain(s, c, mode, n, status, "something was kept");
    if (host_descriptors() != open)
        return complain(s, c, mode, n, status, "a descriptor stays open");
    if (commands_left_halves(w))
        return complain(s, c, mode, n, status, "a file is left half written");
    return refused != 0;
}

static void sweep(Sweep *s, const CommandText *c)
{
    for (Mode mode = 0; mode < MODES; mode++) {
        if (mode == MODE_MALLOC && !malloc_may_be_refused())
            break;
        bool more = true;
        for (size_t n = 0; more; n += n < s->dense ? 1 : n / s->factor + 1 + s->offset % 3)
            more = trial(s, c, mode, n);
    }
    const qcc_status status = command_do(s->w, s->tests, c);
    if (status != c->wanted)
        complain(s, c, MODE_ONCE, 0, status, "does not work afterwards");
}

int main(int argc, char **argv)
{
    static World w;
    const char *offset = getenv("QCC_SWEEP_OFFSET");
    if (argc < 4)
        return 2;
    const bool many = strcmp(argv[3], "many") == 0;
    Sweep s = { .w = &w,
                .tests = argv[2],
                .dense = many ? 200 : 20,
                .factor = many ? 20 : 3,
                .offset = offset ? strtoul(offset, NULL, 16) : 0 };
    const qcc_context_options o = options_of(&w.host);
    w.folder = argv[1];
    if (!commands_prepare(&w, argv[2]) || qcc_open(&o, &w.context) != QCC_OK)
        return 2;
    w.context->memory.apart = true;
    for (size_t i = 0; i < n_command_texts; i++)
        if (command_do(&w, argv[2], &command_texts[i]) == command_texts[i].wanted)
            sweep(&s, &command_texts[i]);
        else
            complain(&s, &command_texts[i], MODE_ONCE, 0, w.host.last, "fails by itself");
    s.bad += !world_close(&w);
    printf("offset %zx: %zu lines, %zu trials, %zu requests refused, %zu bad%s\n", s.offset, n_command_texts, s.trials,
           s.refused, s.bad, malloc_may_be_refused() ? "" : "; malloc is the sanitizer's and was not refused");
    return s.bad || s.trials < n_command_texts * 4;
}
