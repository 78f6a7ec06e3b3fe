/* label: slow */
/* The losses of tests/table/chunk_loss.c on the simulated device, where the launches of all turns are one recorded graph. */
#define ON_DEVICE
#include "table/chunk_loss.c"
