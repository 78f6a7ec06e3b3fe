/* Any bytes as a .npy file. */
#include "fuzz/data.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_fuzz(".npy", data, size);
    return 0;
}
