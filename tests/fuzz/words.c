/* Texts that people write: option lines, limits, and the first bytes of what they take for a model. */
#include <stdlib.h>
#include <string.h>

#include "api/hall/context.h"
#include "api/model/file_kind.h"
#include "api/options/options.h"
#include "fuzz/fuzz.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

typedef struct Input {
    Memory memory;
    const char *bytes;
    size_t n;
} Input;

static Status read_all(void *arg)
{
    Input *in = arg;
    Arena arena;
    Diag diag;
    CommandLine line;
    FileKind kind;
    Limits limits = LIMITS_DEFAULT;
    arena_open(&arena, &in->memory);
    diag_open(&diag, &arena, NULL, NULL);
    const char *text = arena_copy(&arena, in->bytes, strnlen(in->bytes, in->n));
    for (int what = TEXT_READS; what <= TEXT_RECORDED; what++)
        if (options_read_text(&diag, &arena, "fuzz", text, (TextFor)what, &line) == OK) {
            Text config;
            text_open(&config, &arena);
            config_print(&config, &line);
        }
    const char *words[] = { text };
    if (options_read(&diag, &arena, 1, words, &line) == OK)
        (void)options_allowed(&diag, &line);
    (void)limits_read(&diag, NOWHERE, str(text), &limits);
    (void)file_kind(&diag, "fuzz", in->bytes, in->n, &kind);
    arena_close(&arena);
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n + 1);
    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    copy[n] = 0;
    Input in = { .bytes = copy, .n = n };
    memory_open(&in.memory, NULL);
    in.memory.budget = 64 << 20;
    (void)guarded(&in.memory, read_all, &in);
    if (in.memory.used)
        __builtin_trap();
    free(copy);
    return 0;
}
