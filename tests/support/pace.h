/* How long something may take, where many share the processor: its seconds are counted in a known piece of work. */
#ifndef TESTS_SUPPORT_PACE_H
#define TESTS_SUPPORT_PACE_H

#include <stdbool.h>

/* The processor seconds of this process. */
double cpu_seconds(void);

/* How much slower than a release this build is, in what the library does as against the known work. */
double slowness(void);

/* Works for so many seconds of a processor that nobody else wants; the processor seconds it takes here and now. */
double work_for(double seconds);

/* What is tried against a bound: the processor seconds that it took. */
typedef double Timed(void *user);

/* Whether it takes longer than a processor that nobody else wants needs for `enough`: each time of three, however slow the
 * processor is just then, which `bound` counts in.  `took` seconds were taken the first time. */
bool takes_longer(double took, double enough, Timed *again, void *user, double *bound);

#endif
