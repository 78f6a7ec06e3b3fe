/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"): random numbers as a
 * function of key and counter, the same on every device and for every number of threads.
 *
 * Every random number has one address.  Key: (seed, stream).  Counter: (logical index / 4, step, micro-step or
 * iteration, purpose); the element's number within the four is logical index % 4.  Seeds and logical indices are
 * 64-bit: the upper half of a seed is mixed into the key's second word, the upper part of an index into the upper
 * half of the fourth word; both change nothing where they are 0.  Common subset of C11 and CUDA C++; needs nothing but this text. */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#ifdef __CUDACC__
#ifndef QCC_FIXED_WIDTH
#define QCC_FIXED_WIDTH
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long int64_t;
#endif
#define PHILOX __device__ __forceinline__
#else
#include <stdint.h>
#define PHILOX static inline
#endif

typedef struct Philox4 {
    uint32_t v[4];
} Philox4;

/* What the numbers are for, so that two uses of one node never share any. */
typedef enum PhiloxPurpose {
    PHILOX_VALUE = 0,   /* the numbers a random node stands for */
    PHILOX_ROUND = 1,   /* stochastic rounding */
    PHILOX_INIT = 2,    /* initial values of parameters */
    PHILOX_SHUFFLE = 3, /* order of samples */
} PhiloxPurpose;

/* What becomes of the words of an element. */
typedef enum PhiloxLaw {
    PHILOX_KEEP,    /* 1 where the number of [0, 1) is not below a limit, else 0 */
    PHILOX_UNIFORM, /* a number of [0, 1) */
    PHILOX_NORMAL,  /* a standard normal number */
} PhiloxLaw;

/* Four random words of a counter under a key. */
PHILOX Philox4 philox4x32(Philox4 counter, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * counter.v[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * counter.v[2];
        Philox4 next;
        next.v[0] = (uint32_t)(p1 >> 32) ^ counter.v[1] ^ key0;
        next.v[1] = (uint32_t)p1;
        next.v[2] = (uint32_t)(p0 >> 32) ^ counter.v[3] ^ key1;
        next.v[3] = (uint32_t)p0;
        counter = next;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/* The four words of the group of elements 4 * (index / 4) .. + 3. */
PHILOX Philox4 philox_group(uint64_t seed, uint32_t stream, uint64_t index, uint32_t step, uint32_t iteration,
                            uint32_t purpose)
{
    uint64_t group = index / 4;
    Philox4 counter;
    counter.v[0] = (uint32_t)group;
    counter.v[1] = step;
    counter.v[2] = iteration;
    counter.v[3] = purpose ^ (uint32_t)(group >> 32 << 16);
    return philox4x32(counter, (uint32_t)seed, stream ^ (uint32_t)(seed >> 32) * 0x9E3779B1u);
}

/* The word of one element. */
PHILOX uint32_t philox_at(uint64_t seed, uint32_t stream, uint64_t index, uint32_t step, uint32_t iteration,
                          uint32_t purpose)
{
    Philox4 group = philox_group(seed, stream, index, step, iteration, purpose);
    return group.v[index % 4];
}

/* A word as a number of [0, 1): its upper 24 bits, every value exact. */
PHILOX float philox_uniform(uint32_t word)
{
    return (float)(int)(word >> 8) * (1.0f / 16777216.0f);
}

/* A word as a number of (0, 1], for logarithms. */
PHILOX float philox_uniform_positive(uint32_t word)
{
    return (float)(int)((word >> 8) + 1) * (1.0f / 16777216.0f);
}

/* Two words as a number of [0, 1) with 53 bits. */
PHILOX double philox_uniform_f64(uint32_t high, uint32_t low)
{
    return (double)((uint64_t)(high >> 5) << 26 | low >> 6) * (1.0 / 9007199254740992.0);
}

#undef PHILOX

#endif
