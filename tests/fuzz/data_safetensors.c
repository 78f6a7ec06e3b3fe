/* Any bytes as a .safetensors file. */
#include "fuzz/data.h"

const FuzzForm fuzz_form = FUZZ_SAFE;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_fuzz(".safetensors", data, size);
    return 0;
}
