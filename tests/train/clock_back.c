/* Loaded before the C library: the clock of the day is ten years late, and set back by a minute each time that anyone looks.  The clock of
 * intervals goes on as it does. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MINUTE = 60, YEARS = 10 * 365 * 24 * 60 * MINUTE };

static time_t set_back(void)
{
    static _Atomic long looks;
    return YEARS + (time_t)(MINUTE * atomic_fetch_add(&looks, 1));
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const long answer = syscall(SYS_clock_gettime, clock, t);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec -= set_back();
    return (int)answer;
}

int timespec_get(struct timespec *t, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
