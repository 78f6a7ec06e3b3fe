#include "base/mt19937.h"

enum { N = 624, M = 397 };

void mt19937_seed(Mt19937 *m, uint32_t seed)
{
    for (uint32_t i = 0; i < N; i++) {
        m->state[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    m->at = N;
}

static void renew(Mt19937 *m)
{
    uint32_t *s = m->state;
    for (int i = 0; i < N; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);
        s[i] = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->at = 0;
}

uint32_t mt19937_next(Mt19937 *m)
{
    if (m->at == N)
        renew(m);
    uint32_t y = m->state[m->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double mt19937_uniform(Mt19937 *m)
{
    uint32_t high = mt19937_next(m) >> 5, low = mt19937_next(m) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}
