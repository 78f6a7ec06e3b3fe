#include "support/pace.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif

double slowness(void)
{
    if (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
        return 15;
#if defined(QCC_DEBUG)
    return 6;
#else
    return 1.5;
#endif
}

enum { WORK_NUMBERS = 1 << 20, WORK_ROUNDS = 4 };

/* Known work: arithmetic, and memory beyond the nearest caches. */
static void known_work(uint32_t *numbers)
{
    uint64_t x = UINT64_C(88172645463325252);
    for (size_t i = 0; i < WORK_NUMBERS; i++)
        numbers[i] = (uint32_t)i;
    for (size_t i = 0; i < (size_t)WORK_ROUNDS * WORK_NUMBERS; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint32_t *one = &numbers[x % WORK_NUMBERS], *other = &numbers[i % WORK_NUMBERS];
        const uint32_t kept = *one;
        *one = *other;
        *other = kept;
    }
}

double work_for(double seconds)
{
    static const double one = 0.010; /* what known_work takes where nothing else runs */
    uint32_t *numbers = malloc(sizeof *numbers * WORK_NUMBERS);
    const double start = cpu_seconds();
    if (!numbers)
        abort();
    for (double done = 0; done < seconds; done += one)
        known_work(numbers);
    free(numbers);
    return cpu_seconds() - start;
}

/* How much slower than alone this processor is now: many share it, or it is another one.  Eightfold was seen. */
static double share(void)
{
    static const double long_enough = 0.1;
    const double slower = work_for(long_enough) / long_enough;
    return slower > 1 ? slower : 1;
}

bool takes_longer(double took, double enough, Timed *again, void *user, double *bound)
{
    enum { TIMES = 3 };
    for (int i = 0;; i++) {
        *bound = enough * share();
        if (took <= *bound)
            return false;
        if (i == TIMES - 1)
            return true;
        took = again(user);
    }
}
