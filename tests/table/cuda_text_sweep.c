/* label: long */
/* The kernels of tests/table/cuda_text.c, of more random graphs. */
#define SWEEP
#include "table/cuda_text.c"
