#include "frontends/onnx/file/step_digest.h"

#include <string.h>

#include "frontends/onnx/file/dialect.h"

/* The property as it lies in the file, without its digits: metadata_props is field 14 of a model. */
static const char head[] = "\x72\x53\x0a\x0f" QCC_FILE_DIGEST "\x12\x40";
_Static_assert(sizeof head - 1 + STEP_DIGEST_DIGITS == STEP_DIGEST_BYTES, "the lengths in the property");
_Static_assert(sizeof QCC_FILE_DIGEST - 1 == 0x0f, "the length of the key");

/* The digits of everything so far and zeros. */
static void finish(Sha256 *sha, char digits[SHA256_TEXT])
{
    uint8_t digest[SHA256_BYTES];
    char zeros[STEP_DIGEST_DIGITS];
    memset(zeros, '0', sizeof zeros);
    sha256_add(sha, zeros, sizeof zeros);
    sha256_end(sha, digest);
    sha256_text(digits, digest);
}

/* ---- writing ---- */

static Status put(void *user, const void *bytes, size_t n)
{
    DigestSink *s = user;
    sha256_add(&s->sha, bytes, n);
    return s->to.put(s->to.user, bytes, n);
}

Sink step_digest_begin(DigestSink *s, const Sink *to)
{
    s->to = *to;
    sha256_begin(&s->sha);
    return (Sink){ put, s };
}

Status step_digest_end(DigestSink *s, const Sink *sink)
{
    char digits[SHA256_TEXT];
    TRY(sink->put(sink->user, head, sizeof head - 1));
    finish(&s->sha, digits);
    sha256_begin(&s->sha); /* nobody asks for these */
    return sink->put(sink->user, digits, STEP_DIGEST_DIGITS);
}

/* ---- reading ---- */

static bool has_property(const Spine *s)
{
    for (size_t i = 0; i < s->model->n_metadata_props; i++)
        if (str_is(str_of(s->model->metadata_props[i]->key), QCC_FILE_DIGEST))
            return true;
    return false;
}

Status step_digest_check(Spine *s, Diag *d, StepDigest *found)
{
    char end[STEP_DIGEST_BYTES], digits[SHA256_TEXT];
    const uint64_t size = s->source.size;
    Sha256 sha;
    *found = has_property(s) ? STEP_DIGEST_DIFFERS : STEP_DIGEST_NONE;
    if (size < sizeof end)
        return OK;
    TRY(source_read(&s->source, d, size - sizeof end, end, sizeof end));
    if (memcmp(end, head, sizeof head - 1) != 0)
        return OK;
    Heap heap;
    heap_open(&heap, s->memory);
    char *block = heap_alloc(&heap, WINDOW_BYTES);
    Status status = OK;
    sha256_begin(&sha);
    for (uint64_t at = 0, n; at < size - STEP_DIGEST_DIGITS && status == OK; at += n) {
        n = size - STEP_DIGEST_DIGITS - at;
        n = n < WINDOW_BYTES ? n : WINDOW_BYTES;
        status = source_read(&s->source, d, at, block, (size_t)n);
        sha256_add(&sha, block, (size_t)n);
    }
    heap_close(&heap);
    finish(&sha, digits);
    const bool same = memcmp(digits, end + sizeof head - 1, STEP_DIGEST_DIGITS) == 0;
    *found = same ? STEP_DIGEST_GOOD : STEP_DIGEST_DIFFERS;
    return status;
}
