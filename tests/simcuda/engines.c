/* label: slow */
/* The engine cuda on the simulated device, as tests/table/engines.c has cpu: the bits of the reference. */
#define OTHER "cuda"
enum { EVERY = 6, EVERY_RECIPE = 6 };
#include "table/engines.c"
