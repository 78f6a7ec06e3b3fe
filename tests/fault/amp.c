/* Memory that runs out while a step is compiled in mixed precision, and once more in f32 to be compared: every block
 * comes back, and the context speaks of what goes wrong afterwards. */
#include "support/host.h"

enum { EACH = 300, STRIDE = 11 };

/* One command with the n-th block refused, or all from there on, and one that is wrong. */
static int trial(const char *model, size_t refuse, bool lasts, bool *done)
{
    Host h = { .fail_at = refuse, .from_then_on = lasts };
    const qcc_context_options options = options_of(&h);
    const char *const good[] = { "qcc", model, "--amp", "fp16", "--dry-run", "-q" }, *const bad[] = { "qcc",
                                                                                                      "--wrong" };
    const qcc_sink sink = { .write = host_drop };
    qcc_context *cx;
    *done = false;
    if (qcc_open(&options, &cx) != QCC_OK)
        return h.blocks != 0;
    const qcc_status status = qcc_command(cx, 6, good, &sink);
    *done = !h.refused;
    int wrong = status != QCC_OK && status != QCC_NO_MEMORY;
    h.errors = 0;
    host_serve(&h);
    wrong += qcc_command(cx, 2, bad, &sink) != QCC_USAGE || h.errors != 1;
    qcc_close(cx);
    wrong += h.blocks != 0 || h.broken != 0;
    if (wrong)
        fprintf(stderr, "block %zu: status %d, %d errors heard, %zu blocks left, %zu broken\n", refuse, (int)status,
                h.errors, h.blocks, h.broken);
    return wrong;
}

int main(int argc, char **argv)
{
    int bad = 0;
    long runs = 0;
    if (argc < 2)
        return 2;
    for (int lasts = 0; lasts < 2; lasts++) {
        bool done = false;
        for (size_t n = 1; !done; n += n < EACH ? 1 : STRIDE, runs++)
            bad += trial(argv[1], n, lasts, &done);
    }
    printf("%ld runs, %d bad\n", runs, bad);
    return bad != 0;
}
