#include "api/hall/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number_text.h"

const ExitCode exit_codes[] = {
    { OK, "done" },
    { MISMATCH, "a verification found a difference, or training diverged" },
    { USAGE, "the command line" },
    { INVALID, "an invalid model or invalid data" },
    { UNSUPPORTED, "an operator or type that is not supported; all of them are listed" },
    { IO, "a file cannot be read or written" },
    { DEVICE, "a device" },
    { INTERNAL, "a mistake in qcc, or no memory" },
    { INTERRUPTED, "interrupted" },
};

const size_t n_exit_codes = COUNT(exit_codes);

const char *exit_text(Status status)
{
    const Status code = status > INTERNAL && status != INTERRUPTED ? INTERNAL : status;
    for (size_t i = 0; i < n_exit_codes; i++)
        if (exit_codes[i].code == code)
            return exit_codes[i].when;
    return "";
}

void text_label(Text *t, const char *word)
{
    enum { COLUMN = 17 };
    text_printf(t, "  %s ", word);
    text_pad(t, COLUMN);
}

static const char *scaled(Arena *arena, uint64_t n, const char *const *units)
{
    double x = (double)n;
    int u = 0;
    while (x >= 999.95 && u < 4) {
        x /= 1000;
        u++;
    }
    return u ? arena_printf(arena, "%.1f %s", x, units[u]) : arena_printf(arena, "%" PRIu64 "%s", n, units[0]);
}

const char *bytes_text(Arena *arena, uint64_t bytes)
{
    static const char *const units[] = { " bytes", "kB", "MB", "GB", "TB" };
    return scaled(arena, bytes, units);
}

const char *count_text(Arena *arena, uint64_t n)
{
    static const char *const units[] = { "", "k", "M", "G", "T" };
    return scaled(arena, n, units);
}

const char *name_text(Arena *arena, const char *name)
{
    enum { LONGEST = 200 };
    Text t;
    text_open(&t, arena);
    text_escape(&t, name, strlen(name), LONGEST);
    return text_get(&t);
}

const char *grouped(Arena *arena, int64_t n)
{
    char digits[32], out[48];
    const int len = snprintf(digits, sizeof digits, "%" PRId64, n);
    int at = 0;
    for (int i = 0; i < len; i++) {
        if (i && digits[i - 1] != '-' && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    return arena_copy(arena, out, (size_t)at);
}

const char *seconds_text(Arena *arena, double s)
{
    return s >= 1      ? arena_printf(arena, "%.2f s", s)
           : s >= 1e-3 ? arena_printf(arena, "%.3g ms", 1e3 * s)
                       : arena_printf(arena, "%.3g us", 1e6 * s);
}

const char *number_text(Arena *arena, double x)
{
    char digits[NUMBER_TEXT];
    f64_to_text(digits, x);
    return arena_string(arena, digits);
}
