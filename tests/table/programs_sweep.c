/* label: long */
/* The programs of tests/table/programs.c, of ten times as many random graphs. */
#define SWEEP
#include "table/programs.c"
