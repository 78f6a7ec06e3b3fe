/* label: long */
/* The casts of tests/table/casts.c over more types, and 2^22 values of those of 32 and 64 bits. */
#define SWEEP
#include "table/casts.c"
