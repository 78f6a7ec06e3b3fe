#include "base/digest.h"

#include <fcntl.h>

#include "base/arena.h"
#include "base/file.h"

enum { BUFFER_BYTES = 1 << 20 };

static int each_block(Memory *memory, int fd, uint64_t size, void (*add)(void *user, const void *bytes, size_t n),
                      void *user)
{
    Arena scratch;
    int error = 0;
    arena_open(&scratch, memory);
    char *buffer = arena_room(&scratch, BUFFER_BYTES);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (uint64_t at = 0; at < size && !error;) {
        const size_t n = size - at < BUFFER_BYTES ? (size_t)(size - at) : BUFFER_BYTES;
        size_t done;
        error = file_pread(fd, at, buffer, n, &done);
        if (!error && done < n)
            error = -1;
        if (!error)
            add(user, buffer, n);
        at += n;
    }
    arena_close(&scratch);
    return error;
}

static void add_sha256(void *user, const void *bytes, size_t n)
{
    sha256_add(user, bytes, n);
}

static void add_sha1(void *user, const void *bytes, size_t n)
{
    sha1_add(user, bytes, n);
}

int digest_sha256(Memory *memory, int fd, uint64_t size, uint8_t out[SHA256_BYTES])
{
    Sha256 s;
    sha256_begin(&s);
    const int error = each_block(memory, fd, size, add_sha256, &s);
    sha256_end(&s, out);
    return error;
}

int digest_sha1(Memory *memory, int fd, uint64_t size, uint8_t out[SHA1_BYTES])
{
    Sha1 s;
    sha1_begin(&s);
    const int error = each_block(memory, fd, size, add_sha1, &s);
    sha1_end(&s, out);
    return error;
}
