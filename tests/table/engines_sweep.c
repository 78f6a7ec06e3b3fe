/* label: long */
/* The engines of tests/table/engines.c with every way of making values again. */
#define SWEEP
#include "table/engines.c"
