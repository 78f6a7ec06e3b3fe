/* label: long */
/* The engine cuda on the simulated device: all recipes of all models. */
#define OTHER "cuda"
enum { EVERY = 1, EVERY_RECIPE = 1 };
#include "table/engines.c"
