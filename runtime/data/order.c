#include "runtime/data/order.h"

#include <string.h>

#include "base/philox.h"

enum { ROUNDS = 8, LEAST_BITS = 3, BLOCK = 512, WORDS = BLOCK / 64 };

/* A balanced Feistel network over 2 * bits bits; Philox is its round function, so every round has its own key. */
static uint64_t feistel(uint64_t seed, OrderPurpose purpose, uint64_t epoch, unsigned bits, uint64_t at)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t left = at >> bits, right = at & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const Philox4 f =
            philox_group(seed, (uint32_t)purpose, right * 4, (uint32_t)epoch, round, (uint32_t)PHILOX_SHUFFLE);
        const uint64_t next = left ^ (f.v[0] & mask);
        left = right;
        right = next;
    }
    return left << bits | right;
}

/* A permutation of a power of four becomes one of n by walking its cycle until it is below n: less than four turns on
 * average. */
uint64_t order_at(uint64_t seed, OrderPurpose purpose, uint64_t epoch, uint64_t n, uint64_t at)
{
    unsigned bits = LEAST_BITS;
    if (n < 2)
        return 0;
    while (bits < 31 && n > (uint64_t)1 << 2 * bits)
        bits++;
    do
        at = feistel(seed, purpose, epoch, bits, at);
    while (at >= n);
    return at;
}

/* ---- the split ---- */

static uint64_t round_share(uint64_t n, double fraction)
{
    const uint64_t held = (uint64_t)((double)n * fraction + 0.5);
    if (n < 2)
        return 0;
    return held < 1 ? 1 : held > n - 1 ? n - 1 : held;
}

void split_open(Split *s, Arena *arena, uint64_t seed, uint64_t n, double fraction)
{
    const uint64_t blocks = n / BLOCK + 1;
    *s = (Split){ .n = n, .n_held = round_share(n, fraction) };
    s->held = arena_array(arena, blocks * WORDS, sizeof *s->held);
    s->before = arena_array(arena, blocks + 1, sizeof *s->before);
    for (uint64_t i = 0; i < s->n_held; i++) {
        const uint64_t k = order_at(seed, ORDER_SPLIT, 0, n, i);
        s->held[k / 64] |= (uint64_t)1 << k % 64;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t sum = 0;
        for (uint64_t w = b * WORDS; w < (b + 1) * WORDS; w++)
            sum += (uint64_t)__builtin_popcountll(s->held[w]);
        s->before[b + 1] = s->before[b] + sum;
    }
}

/* How many of the wanted side stand before a block. */
static uint64_t side_before(const Split *s, bool held, uint64_t block)
{
    return held ? s->before[block] : block * BLOCK - s->before[block];
}

uint64_t split_at(const Split *s, bool held, uint64_t at)
{
    uint64_t low = 0, high = s->n / BLOCK; /* the last block with at most `at` of them before it */
    while (low < high) {
        const uint64_t middle = (low + high + 1) / 2;
        if (side_before(s, held, middle) <= at)
            low = middle;
        else
            high = middle - 1;
    }
    uint64_t left = at - side_before(s, held, low);
    const uint64_t *word = s->held + low * WORDS;
    for (;; word++) {
        uint64_t bits = held ? *word : ~*word;
        const uint64_t n = (uint64_t)__builtin_popcountll(bits);
        if (left >= n) {
            left -= n;
            continue;
        }
        for (; left > 0; left--)
            bits &= bits - 1; /* the lowest goes */
        return (uint64_t)(word - s->held) * 64 + (uint64_t)__builtin_ctzll(bits);
    }
}
