/* A fuzz target without libFuzzer: TARGET [-n MUTATIONS] FILE|FOLDER ... runs every file as it is, then with that many
 * changes each, drawn from the name of the file: bytes changed, doubled, dropped, pieces of two files joined. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fuzz/fuzz.h"
#include "support/seed.h"

enum { MOST_BYTES = 1 << 20, DEEPEST = 8, MOST_FILES = 10000 };

typedef struct Sample {
    uint64_t seed;
    uint8_t *bytes;
    size_t n;
} Sample;

typedef struct Corpus {
    Sample *samples;
    size_t n;
} Corpus;

static void add_file(Corpus *c, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = f && c->n < MOST_FILES ? malloc(MOST_BYTES) : NULL;
    if (bytes) {
        const size_t n = fread(bytes, 1, MOST_BYTES, f);
        c->samples[c->n++] = (Sample){ seed_of(path, 0), realloc(bytes, n ? n : 1), n };
    }
    if (f)
        fclose(f);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Folders nest as far as whoever wrote them let them: eight levels. */
static void add_path(Corpus *c, const char *path, int depth)
{
    struct dirent **entries;
    const int n = depth < DEEPEST ? scandir(path, &entries, visible, alphasort) : -1;
    if (n < 0) {
        add_file(c, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        add_path(c, inner, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

static size_t splice(uint8_t *out, const Sample *a, const Sample *b, Rng *r)
{
    const size_t head = (size_t)rng_below(r, (int64_t)a->n + 1), from = (size_t)rng_below(r, (int64_t)b->n + 1);
    memcpy(out, a->bytes, head);
    memcpy(out + head, b->bytes + from, b->n - from);
    return head + b->n - from;
}

/* Changes in the form of the input, and others that do not care for it. */
static size_t mutate(uint8_t *out, const Corpus *c, const Sample *s, Rng *r)
{
    size_t n = s->n;
    memcpy(out, s->bytes, n);
    if (rng_below(r, 4) == 0)
        n = splice(out, s, &c->samples[rng_below(r, (int64_t)c->n)], r);
    if (fuzz_form != FUZZ_BYTES && rng_below(r, 3))
        return fuzz_mutate(out, n, 2 * MOST_BYTES, rng_u64(r));
    for (int64_t k = rng_below(r, 6); n && k >= 0; k--) {
        const size_t at = (size_t)rng_below(r, (int64_t)n), length = (size_t)rng_below(r, 16) % (n - at);
        switch (rng_below(r, 4)) {
        case 0:
            out[at] = (uint8_t)rng_u64(r);
            break;
        case 1:
            out[at] ^= (uint8_t)(1 << rng_below(r, 8));
            break;
        case 2:
            memmove(out + at, out + at + length, n - at - length);
            n -= length;
            break;
        default:
            memmove(out + at + length, out + at, n - at);
            n += length;
            break;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    Corpus c = { calloc(MOST_FILES, sizeof(Sample)), 0 };
    uint8_t *buffer = malloc(2 * MOST_BYTES + 256);
    long mutations = 0, ran = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            mutations = atol(argv[++i]);
        else
            add_path(&c, argv[i], 0);
    }
    for (size_t i = 0; i < c.n; i++) {
        LLVMFuzzerTestOneInput(c.samples[i].bytes, c.samples[i].n);
        Rng rng = { c.samples[i].seed };
        for (long k = 0; k < mutations; k++, ran++)
            LLVMFuzzerTestOneInput(buffer, mutate(buffer, &c, &c.samples[i], &rng));
    }
    printf("%zu files, %ld changed\n", c.n, ran);
    for (size_t i = 0; i < c.n; i++)
        free(c.samples[i].bytes);
    free(c.samples);
    free(buffer);
    return c.n == 0;
}
