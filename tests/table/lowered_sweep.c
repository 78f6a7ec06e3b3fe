/* label: long */
/* The steps of tests/table/lowered.c, each with borders anywhere. */
#define SWEEP
#include "table/lowered.c"
