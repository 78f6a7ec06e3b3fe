/* Memory that runs out while a step is compiled in mixed precision, and once more in f32 to be compared: every block
 * comes back, and the context speaks of what goes wrong afterwards. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "qcc/qcc.h"

enum { EACH = 300, STRIDE = 11 };

typedef struct Host {
    long given, asked, refuse; /* blocks out; asked for so far; from which one on none is given */
    int errors;                /* heard */
} Host;

static void *take(void *user, size_t size)
{
    Host *h = user;
    if (++h->asked == h->refuse)
        return NULL;
    void *block;
    if (posix_memalign(&block, 64, size) != 0)
        return NULL;
    h->given++;
    return block;
}

static void give_back(void *user, void *block, size_t size)
{
    Host *h = user;
    (void)size;
    h->given -= block != NULL;
    free(block);
}

static void hear(void *user, const qcc_message *message)
{
    Host *h = user;
    h->errors += message->severity == QCC_ERROR;
}

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

/* One command with the n-th block refused, and one that is wrong. */
static int trial(const char *model, long refuse, bool *done)
{
    Host h = { .refuse = refuse };
    const qcc_context_options options = {
        .size = sizeof options, .user = &h, .alloc = take, .release = give_back, .report = hear, .threads = 1
    };
    const char *const good[] = { "qcc", model, "--amp", "fp16", "--dry-run", "-q" }, *const bad[] = { "qcc",
                                                                                                      "--wrong" };
    const qcc_sink sink = { .write = drop };
    qcc_context *cx;
    *done = false;
    if (qcc_open(&options, &cx) != QCC_OK)
        return h.given != 0;
    const qcc_status status = qcc_command(cx, 6, good, &sink);
    *done = h.asked < refuse;
    int wrong = status != QCC_OK && status != QCC_NO_MEMORY;
    h.errors = 0;
    h.refuse = 0;
    wrong += qcc_command(cx, 2, bad, &sink) != QCC_USAGE || h.errors != 1;
    qcc_close(cx);
    if (wrong || h.given)
        fprintf(stderr, "block %ld: status %d, %d errors heard, %ld blocks left\n", refuse, (int)status, h.errors,
                h.given);
    return wrong || h.given != 0;
}

int main(int argc, char **argv)
{
    int bad = 0;
    long runs = 0;
    bool done = false;
    if (argc < 2)
        return 2;
    for (long n = 1; !done; n += n < EACH ? 1 : STRIDE, runs++)
        bad += trial(argv[1], n, &done);
    printf("%ld runs, %d bad\n", runs, bad);
    return bad != 0;
}
