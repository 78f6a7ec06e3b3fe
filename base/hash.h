/* A fast 64-bit hash of bytes, the same on every machine: for tables, caches and names, not against an adversary
 * (base/sha256.h).  Folded 128-bit products; constants are fractional parts of square roots of small primes. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_A 0x510e527fade682d1u
#define HASH_B 0x9b05688c2b3e6c1fu
#define HASH_C 0x1f83d9abfb41bd6bu
#define HASH_D 0x5be0cd19137e2179u

/* Both halves of a product, folded. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* One word into a running hash; the order of words matters. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    return hash_fold(hash ^ HASH_A, word ^ HASH_B) ^ (hash << 1 | hash >> 63);
}

/* Up to eight bytes as a little-endian number. */
static inline uint64_t hash_load(const unsigned char *p, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t x;
    if (n == 8) {
        memcpy(&x, p, 8);
        return x;
    }
#else
    uint64_t x;
#endif
    x = 0;
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* The hash of n bytes under a seed. */
static inline uint64_t hash64(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = (const unsigned char *)bytes;
    uint64_t h = hash_fold(seed ^ HASH_A, (uint64_t)n ^ HASH_C), g = h ^ HASH_D;
    size_t left = n;
    for (; left > 32; left -= 32, p += 32) { /* two chains: a product takes longer than two loads */
        h = hash_fold(hash_load(p, 8) ^ HASH_A, hash_load(p + 8, 8) ^ h);
        g = hash_fold(hash_load(p + 16, 8) ^ HASH_B, hash_load(p + 24, 8) ^ g);
    }
    if (left > 16) {
        h = hash_fold(hash_load(p, 8) ^ HASH_C, hash_load(p + 8, 8) ^ h);
        left -= 16, p += 16;
    }
    size_t low = left < 8 ? left : 8;
    uint64_t a = low ? hash_load(p, low) : 0, b = left > 8 ? hash_load(p + 8, left - 8) : 0;
    h = hash_fold(a ^ HASH_D, b ^ h);
    return hash_fold(h ^ HASH_B, g ^ HASH_C);
}

#undef HASH_A
#undef HASH_B
#undef HASH_C
#undef HASH_D

#endif
