/* Any bytes as the log of a run that goes on. */
#include "fuzz/text.h"
#include "runtime/log/log.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

static Status read_log(void *arg)
{
    TextFuzz *z = arg;
    Log log;
    const Status status = log_resume(&log, &z->memory, &z->diag, z->path, 7);
    if (status == OK)
        log_close(&log);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    text_fuzz(data, size, read_log);
    return 0;
}
