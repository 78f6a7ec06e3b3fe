/* label: fast */
/* The loops of tests/table/turns.c on the simulated device, where the launches of all turns are one recorded graph. */
#define ON_DEVICE
#include "table/turns.c"
