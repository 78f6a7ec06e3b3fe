/* What the simulated driver counts, for tests: symbols of its library besides those of the driver. */
#ifndef TESTS_SIMCUDA_COUNTS_H
#define TESTS_SIMCUDA_COUNTS_H

#include <stdint.h>

typedef struct SimCounts {
    uint64_t calls;                    /* of functions of the driver, but for those that name errors */
    uint64_t launches, blocks, graphs; /* kernels that ran, their blocks; graphs that were launched */
    uint64_t beside;                   /* of what graphs launched, what may run beside something else */
    uint64_t works;                    /* of libraries, which ran */
    uint64_t copies, copied;           /* and their bytes */
    uint64_t waits;                    /* for streams and events, */
    uint64_t drains;                   /* behind which a device had nothing to do any more */
    uint64_t reports;                  /* of what the program did wrong */
} SimCounts;

/* simcuda_counts */
typedef void SimCountsFn(SimCounts *);

/* simcuda_report: the last report; "" where there is none. */
typedef const char *SimReportFn(void);

/* simcuda_forget: an error that stays and the reports, which a process of its own would not have. */
typedef void SimForgetFn(void);

/* simcuda_left: how much is still given out, as the audit at the end counts it. */
typedef uint64_t SimLeftFn(void);

#endif
