/* Any line as a pattern, and what follows it as texts: a fault with a place or an answer, twice the same, in the memory
 * that the bound on states grants. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/pattern.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

typedef struct Run {
    Memory memory;
    char *text; /* what came, with a NUL behind it */
    size_t n;
} Run;

static void search(TextPattern *p, const char *text, const char *end)
{
    while (text < end) {
        const bool found = pattern_finds(p, text);
        if (pattern_finds(p, text) != found)
            abort();
        text += strlen(text) + 1;
    }
}

static Status run(void *arg)
{
    Run *r = arg;
    Arena arena;
    PatternFault fault;
    char *pattern = r->text, *text = pattern + strcspn(pattern, "\n");
    const char *end = pattern + r->n;
    if (text < end)
        *text++ = 0;
    for (char *p = text; p < end; p++)
        *p = *p == '\n' ? 0 : *p;
    arena_open(&arena, &r->memory);
    TextPattern *p = pattern_read(&arena, pattern, LIMITS_DEFAULT.selector_states, &fault);
    if (!p && (!fault.what || fault.at > strlen(pattern)))
        abort();
    if (p)
        search(p, text, end);
    arena_close(&arena);
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { BUDGET = 8 << 20 };
    Run r = { .text = malloc(size + 1), .n = size };
    if (!r.text)
        abort();
    if (size)
        memcpy(r.text, data, size);
    r.text[size] = 0;
    memory_open(&r.memory, NULL);
    r.memory.budget = BUDGET;
    if (guarded(&r.memory, run, &r) != OK || r.memory.used)
        abort();
    free(r.text);
    return 0;
}
