/* Nothing grows: every call is made again and again, with what gives back what it made, and the context holds after many
 * rounds what it held after a few.  Arenas give each request a block of its own here: no byte hides in a chunk. */

#include "api/hall/context.h"
#include "fault/commands.h"

enum { WARM = 8, ROUNDS = 12 };

static qcc_status rounds(World *w, const Verb *verb, int n)
{
    qcc_status status = QCC_OK;
    for (int i = 0; i < n && status == QCC_OK; i++, w->round++)
        status = verb->before && verb->before(w) != QCC_OK ? QCC_INTERNAL : verb->run(w);
    return status;
}

/* What a round adds; texts of properties differ in length, and come back. */
static int measure(World *w, const Verb *verb)
{
    qcc_status status = rounds(w, verb, WARM);
    const size_t blocks = w->host.blocks, bytes = w->host.bytes;
    if (status == QCC_OK)
        status = rounds(w, verb, ROUNDS);
    const bool grows = w->host.blocks != blocks || w->host.bytes != bytes;
    if (grows || status != QCC_OK)
        printf("%s, %s: status %d (%s), %zu blocks and %zu bytes, %zu rounds later %zu and %zu\n",
               w->file ? w->file : "text", verb->name, (int)status, w->host.text, blocks, bytes, (size_t)ROUNDS,
               w->host.blocks, w->host.bytes);
    return grows || status != QCC_OK;
}

/* A context that does nothing but commands. */
static int measure_commands(World *w, const char *tests)
{
    const Host fresh = { 0 };
    int bad = !commands_prepare(w, tests);
    w->host = fresh;
    const qcc_context_options o = options_of(&w->host);
    if (qcc_open(&o, &w->context) != QCC_OK)
        return 1;
    w->context->memory.apart = true;
    for (size_t i = 0; i < n_command_texts; i++) {
        const CommandText *c = &command_texts[i];
        qcc_status status = command_do(w, tests, c);
        const size_t blocks = w->host.blocks, bytes = w->host.bytes;
        for (int k = 0; k < 2 && status == c->wanted; k++)
            status = command_do(w, tests, c);
        const bool grows = w->host.blocks != blocks || w->host.bytes != bytes;
        if (status != c->wanted || grows)
            printf("qcc %s: status %d, %zu bytes, later %zu: %s\n", c->text, (int)status, bytes, w->host.bytes,
                   w->host.text);
        bad += status != c->wanted || grows;
    }
    return bad + !world_close(w) + commands_left_halves(w);
}

/* No request of an arena hides in a chunk: each may fail, and what is kept shows. */
static void set_apart(qcc_context *context)
{
    context->memory.apart = true;
}

static int sweep(World *w, const char *file, const char *options)
{
    const Host fresh = { 0 };
    int bad = 0;
    w->host = fresh;
    w->file = file;
    w->options = options;
    w->opened = set_apart;
    if (world_open(w) != QCC_OK) {
        printf("%s: %s\n", file ? file : "text", w->host.text);
        return 1;
    }
    for (size_t v = 0; v < world_n_verbs; v++)
        bad += measure(w, &world_verbs[v]);
    return bad + !world_close(w);
}

int main(int argc, char **argv)
{
    static World w;
    int bad = 0;
    if (argc < 3)
        return 2;
    w.folder = argv[1];
    bad += measure_commands(&w, argv[2]);
    bad += sweep(&w, NULL, WORLD_TEXT_OPTIONS " --amp fp16");
    for (int i = 3; i < argc; i++)
        bad += sweep(&w, argv[i], "--optimizer sgd:lr=1e-2");
    printf("%zu commands, %zu calls of %d models, %d that grow\n", n_command_texts, world_n_verbs, argc - 2, bad);
    return bad != 0;
}
