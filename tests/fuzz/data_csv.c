/* Any bytes as a .csv file. */
#include "fuzz/data.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_fuzz(".csv", data, size);
    return 0;
}
