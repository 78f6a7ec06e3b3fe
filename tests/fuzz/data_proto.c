/* Any bytes as a .pb file with a TensorProto. */
#include "fuzz/data.h"

const FuzzForm fuzz_form = FUZZ_WIRE;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_fuzz(".pb", data, size);
    return 0;
}
