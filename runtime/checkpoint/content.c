#include "runtime/checkpoint/content.h"

#include <string.h>

enum { DIGITS = SHA256_TEXT - 1, CHUNK = 1 << 18 };

char *content_begin(Sha256 *sha, char *head, size_t n)
{
    static const char before[] = "\"" CHECKPOINT_HASH "\":\""; /* inside a string its quotes would be escaped */
    char *digits = memmem(head, n, before, sizeof before - 1);
    if (digits)
        digits += sizeof before - 1;
    if (!digits || digits + DIGITS > head + n)
        return NULL;
    memset(digits, '0', DIGITS);
    sha256_begin(sha);
    sha256_add(sha, head, n);
    return digits;
}

static Status hash_tail(Sha256 *sha, ContentRead read, void *user, uint64_t at, uint64_t size, char *chunk)
{
    while (at < size) {
        const size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        TRY(read(user, at, chunk, n));
        sha256_add(sha, chunk, n);
        at += n;
    }
    return OK;
}

static Status check(Heap *heap, ContentRead read, void *user, uint64_t head, uint64_t size, bool *whole)
{
    char *text = heap_alloc(heap, head), *again = heap_alloc(heap, head), hex[SHA256_TEXT];
    uint8_t digest[SHA256_BYTES];
    Sha256 sha;
    TRY(read(user, 0, text, head));
    memcpy(again, text, head);
    const char *digits = content_begin(&sha, text, head);
    if (!digits)
        return OK;
    TRY(hash_tail(&sha, read, user, head, size, heap_alloc(heap, CHUNK)));
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    *whole = memcmp(again + (digits - text), hex, DIGITS) == 0;
    return OK;
}

Status content_check(Memory *m, ContentRead read, void *user, uint64_t head, uint64_t size, bool *whole)
{
    Heap heap;
    *whole = false;
    heap_open(&heap, m);
    const Status status = check(&heap, read, user, head, size, whole);
    heap_close(&heap);
    return status;
}
