/* What this machine can do at most, on one core: the limits that the other figures stand beside.  One line each: name,
 * figure, unit; the best of several turns. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { TURNS = 7, WIDE = 64 };

static const size_t large = (size_t)256 << 20;

typedef float Wide __attribute__((vector_size(WIDE)));
typedef uint64_t Words __attribute__((vector_size(WIDE)));

/* Visible from outside, so that what ends here counts as used. */
extern volatile float end_f32;
volatile float end_f32;
extern volatile uint64_t end_u64;
volatile uint64_t end_u64;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve sums at once hide the latency of a fused multiply-add on every core known. */
static double multiply_add(void)
{
    enum { SUMS = 12, TIMES = 20000000 };
    const Wide a = (Wide){ 0 } + 0.999f, b = (Wide){ 0 } + 1e-3f;
    Wide s[SUMS];
    for (int k = 0; k < SUMS; k++)
        s[k] = b * (float)k;
    const double from = now();
    for (int i = 0; i < TIMES / SUMS; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < SUMS; k++)
            s[k] = s[k] * a + b;
    }
    const double spent = now() - from;
    for (int k = 1; k < SUMS; k++)
        s[0] += s[k];
    end_f32 = s[0][0];
    return 2.0 * (WIDE / sizeof(float)) * (TIMES / SUMS * SUMS) / spent * 1e-9;
}

static double read_memory(const void *p)
{
    const Words *w = p;
    Words a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    const double from = now();
    for (size_t i = 0; i < large / WIDE; i += 4) {
        a += w[i];
        b += w[i + 1];
        c += w[i + 2];
        d += w[i + 3];
    }
    const double spent = now() - from;
    a += b + c + d;
    end_u64 = a[0];
    return (double)large / spent * 1e-9;
}

static double copy_memory(void *to, const void *from_where)
{
    const double from = now();
    memcpy(to, from_where, large);
    const double spent = now() - from;
    end_u64 = ((const uint64_t *)to)[17];
    return (double)large / spent * 1e-9;
}

/* The first write to each page: what any program pays for memory that it did not have before. */
static double first_touch(void)
{
    const double from = now();
    char *p = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 0;
    madvise(p, large, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < large; i += 4096)
        p[i] = 1;
    const double spent = now() - from;
    munmap(p, large);
    return (double)large / spent * 1e-9;
}

static double more(double a, double b)
{
    return a > b ? a : b;
}

int main(void)
{
    void *p = aligned_alloc(4096, large), *q = aligned_alloc(4096, large);
    if (!p || !q)
        return 1;
    memset(p, 1, large);
    memset(q, 2, large);
    double fma = 0, bytes_read = 0, bytes_copied = 0, touched = 0;
    for (int i = 0; i < TURNS; i++) {
        fma = more(fma, multiply_add());
        bytes_read = more(bytes_read, read_memory(p));
        bytes_copied = more(bytes_copied, copy_memory(q, p));
        touched = more(touched, first_touch());
    }
    printf("fma_f32 %.1f GFLOP/s\nread %.2f GB/s\ncopy %.2f GB/s\nfirst_touch %.2f GB/s\n", fma, bytes_read,
           bytes_copied, touched);
    free(p);
    free(q);
    return 0;
}
