/* Any bytes as a .npz file. */
#include "fuzz/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_fuzz(".npz", data, size);
    return 0;
}
