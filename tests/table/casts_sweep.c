/* label: slow */
/* The casts of tests/table/casts.c over 2^22 values of every type of 32 and 64 bits. */
#define BLOCKS 64
#include "table/casts.c"
