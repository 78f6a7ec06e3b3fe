#include "unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sha1.h"
#include "base/sha256.h"

static int compare_words(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* 400,000 keys of the kinds we have: any collision of 64 bits would be a one in 10^8 accident. */
static void similar_keys_do_not_collide(void **state)
{
    (void)state;
    enum { KINDS = 4, EACH = 100000 };
    uint64_t *hashes = malloc(sizeof *hashes * KINDS * EACH), *h = hashes;
    assert_non_null(hashes);
    static char zeros[EACH];
    for (uint32_t i = 0; i < EACH; i++) {
        char text[40];
        uint32_t words[8] = { 1, 0, 0, i, 0, 0, 0, 2 };
        memset(text, 'x', sizeof text);
        text[20] = (char)i, text[21] = (char)(i >> 8), text[22] = (char)(i >> 16);
        *h++ = hash64(&i, sizeof i, 0);
        *h++ = hash64(words, sizeof words, 0);
        *h++ = hash64(text, 23 + i % 17, 0);
        *h++ = hash64(zeros, i % 1000, i / 1000 + 1);
    }
    qsort(hashes, KINDS * EACH, sizeof *hashes, compare_words);
    for (size_t i = 1; i < KINDS * EACH; i++)
        assert_true(hashes[i] != hashes[i - 1]);
    free(hashes);
}

/* Each bit of the input, at every length, turns about half of the bits of the hash. */
static void every_bit_matters(void **state)
{
    (void)state;
    unsigned char bytes[100];
    for (size_t n = 1; n <= sizeof bytes; n++)
        for (size_t bit = 0; bit < 8 * n; bit++) {
            int turned = 0;
            for (unsigned round = 0; round < 8; round++) {
                for (size_t i = 0; i < n; i++)
                    bytes[i] = (unsigned char)(i * 37 + round * 101);
                uint64_t before = hash64(bytes, n, round);
                bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
                turned += __builtin_popcountll(before ^ hash64(bytes, n, round));
            }
            check_that(turned > 8 * 32 - 80 && turned < 8 * 32 + 80, "bit %zu of %zu bytes: %d of 512", bit, n, turned);
        }
}

static void low_bits_fill_tables_evenly(void **state)
{
    (void)state;
    enum { SLOTS = 1024, KEYS = 64 * SLOTS };
    for (int shift = 0; shift <= 54; shift += 54) {
        static int slots[SLOTS];
        memset(slots, 0, sizeof slots);
        for (uint64_t key = 0; key < KEYS; key++)
            slots[hash64(&key, sizeof key, 7) >> shift & (SLOTS - 1)]++;
        double chi = 0;
        for (int i = 0; i < SLOTS; i++)
            chi += (slots[i] - 64.0) * (slots[i] - 64.0) / 64.0;
        check_that(chi > 800 && chi < 1280, "chi square %g of 1023 degrees", chi);
    }
}

static void reads_exactly_its_bytes(void **state)
{
    (void)state;
    unsigned char a[80], b[80];
    for (size_t n = 0; n < 64; n++)
        for (size_t at = 0; at < 8; at++) {
            memset(a, 1, sizeof a);
            memset(b, 2, sizeof b);
            for (size_t i = 0; i < n; i++)
                a[i] = b[at + i] = (unsigned char)(i + n);
            assert_true(hash64(a, n, 3) == hash64(b + at, n, 3));
        }
    assert_true(hash64("", 0, 0) != hash64("", 0, 1));
    assert_true(hash_word(hash_word(0, 1), 2) != hash_word(hash_word(0, 2), 1));
}

static void expect_sha256(const char *bytes, size_t n, size_t times, const char *want)
{
    for (size_t piece = 1; piece <= n + 2; piece++) {
        Sha256 s;
        uint8_t digest[SHA256_BYTES];
        char text[SHA256_TEXT];
        (piece % 2 ? sha256_begin_plain : sha256_begin)(&s);
        for (size_t t = 0; t < times; t++)
            for (size_t i = 0; i < n; i += piece)
                sha256_add(&s, bytes + i, n - i < piece ? n - i : piece);
        sha256_end(&s, digest);
        sha256_text(text, digest);
        assert_string_equal(text, want);
    }
}

/* The examples of FIPS 180-4 and its companions. */
static void sha256_known_answers(void **state)
{
    (void)state;
    expect_sha256("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha256("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_sha256(two, 56, 1, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_sha256("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50, 20000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length about the block's end, as one digest of digests. */
static void sha256_of_every_length(void **state)
{
    (void)state;
    unsigned char bytes[200];
    uint8_t digest[SHA256_BYTES];
    char text[SHA256_TEXT];
    Sha256 all, one;
    sha256_begin(&all);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        if (n)
            bytes[n - 1] = (unsigned char)(n * 7);
        uint8_t plain[SHA256_BYTES];
        sha256_begin(&one);
        sha256_add(&one, bytes, n);
        sha256_end(&one, digest);
        sha256_begin_plain(&one);
        sha256_add(&one, bytes, n);
        sha256_end(&one, plain);
        assert_memory_equal(plain, digest, sizeof digest);
        sha256_add(&all, digest, sizeof digest);
    }
    sha256_end(&all, digest);
    sha256_text(text, digest);
    assert_string_equal(text, "638791e3f8e8d588fbb4d15a20286e0676006b5e66fc723a5d9a16c3076a164e");
}

static void expect_sha1(const char *bytes, size_t n, size_t times, const char *want)
{
    for (size_t piece = 1; piece <= n + 2; piece++) {
        Sha1 s;
        uint8_t digest[SHA1_BYTES];
        char text[SHA1_TEXT];
        (piece % 2 ? sha1_begin_plain : sha1_begin)(&s);
        for (size_t t = 0; t < times; t++)
            for (size_t i = 0; i < n; i += piece)
                sha1_add(&s, bytes + i, n - i < piece ? n - i : piece);
        sha1_end(&s, digest);
        sha1_text(text, digest);
        assert_string_equal(text, want);
    }
}

/* The same messages: examples of FIPS 180-4 and RFC 3174. */
static void sha1_known_answers(void **state)
{
    (void)state;
    expect_sha1("", 0, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect_sha1("abc", 3, 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_sha1(two, 56, 1, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect_sha1("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50, 20000,
                "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    expect_sha1("0123456701234567012345670123456701234567012345670123456701234567", 64, 10,
                "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

/* Every length about the block's end and several blocks, as one digest of digests. */
static void sha1_of_every_length(void **state)
{
    (void)state;
    unsigned char bytes[400];
    uint8_t digest[SHA1_BYTES], plain[SHA1_BYTES];
    char text[SHA1_TEXT];
    Sha1 all, one;
    sha1_begin(&all);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        if (n)
            bytes[n - 1] = (unsigned char)(n * 7);
        sha1_begin(&one);
        sha1_add(&one, bytes, n);
        sha1_end(&one, digest);
        sha1_begin_plain(&one);
        sha1_add(&one, bytes, n);
        sha1_end(&one, plain);
        assert_memory_equal(plain, digest, sizeof digest);
        sha1_add(&all, digest, sizeof digest);
    }
    sha1_end(&all, digest);
    sha1_text(text, digest);
    assert_string_equal(text, "7565b78ad6c83801c3dd10a017e5d397807e329d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(similar_keys_do_not_collide), cmocka_unit_test(every_bit_matters),
        cmocka_unit_test(low_bits_fill_tables_evenly), cmocka_unit_test(reads_exactly_its_bytes),
        cmocka_unit_test(sha256_known_answers),        cmocka_unit_test(sha256_of_every_length),
        cmocka_unit_test(sha1_known_answers),          cmocka_unit_test(sha1_of_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
