/* The kernels of a text, and the text as kernel.hpp wants it. */
#ifndef TESTS_SIMCUDA_SCAN_H
#define TESTS_SIMCUDA_SCAN_H

#include <stddef.h>

typedef struct ScannedKernel {
    char *name;
    int most_threads; /* of __launch_bounds__; 0: none said */
    int refused;      /* the parameter `u32 *refused`, which is set where values refuse a launch; below 0: none */
} ScannedKernel;

typedef struct Scan {
    char *text; /* with as many lines as the one that was read */
    ScannedKernel *kernels;
    int n;
} Scan;

/* Finds the functions behind `extern "C" __global__`, and writes which of them each `__shared__` is of: SIM_SHARED(number), in
 * other functions SIM_SHARED(functions), and SIM_DYNAMIC(type, name) for `extern __shared__ type name[]`. */
void scan(Scan *, const char *text);

void scan_free(Scan *);

#endif
