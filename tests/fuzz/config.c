/* Any bytes as a file of --config, and as one of --limits; what is in force prints, and reads back the same. */
#include "api/hall/context.h"
#include "api/options/options.h"
#include "fuzz/text.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

static Status read_config(void *arg)
{
    TextFuzz *z = arg;
    CommandLine line;
    Limits limits = LIMITS_DEFAULT;
    const char *words[] = { "--config", z->path };
    (void)limits_read(&z->diag, NOWHERE, str(z->text), &limits);
    const Status status = options_read(&z->diag, &z->arena, 2, words, &line);
    if (status != OK)
        return status;
    Text config;
    text_open(&config, &z->arena);
    config_print(&config, &line);
    return options_allowed(&z->diag, &line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    text_fuzz(data, size, read_config);
    return 0;
}
