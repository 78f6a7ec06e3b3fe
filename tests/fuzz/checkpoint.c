/* Any bytes as a checkpoint, with the hash that they ought to have: loaded, or refused with the session as it was. */
#include <string.h>

#include "fuzz/host.h"
#include "runtime/checkpoint/content.h"

const FuzzForm fuzz_form = FUZZ_SAFE;

enum { FLAT = 4 * 3 + 3 };

static const char model_text[] = "graph @net(%x: f32[2,4]) -> (%y) {\n"
                                 "    param %w: f32[4,3] = kaiming(seed=1)\n"
                                 "    param %b: f32[3] = zeros\n"
                                 "    %h: f32[2,3] = matmul(%x, %w)\n"
                                 "    %y: f32[2,3] = add(%h, %b)\n"
                                 "}\n";

typedef struct Stage {
    long blocks;
    qcc_context *cx;
    qcc_session *session;
    uint8_t own[8192]; /* what the session saves */
    size_t n_own;
} Stage;

static qcc_status gather(void *user, const void *bytes, size_t n)
{
    Stage *s = user;
    if (n > sizeof s->own - s->n_own)
        return QCC_IO;
    memcpy(s->own + s->n_own, bytes, n);
    s->n_own += n;
    return QCC_OK;
}

/* One session serves all inputs: it is there to be changed by one of them. */
static Stage *stage(void)
{
    static Stage s;
    qcc_model *m;
    qcc_step *step;
    const qcc_source source = qcc_bytes(model_text, sizeof model_text - 1);
    if (s.cx)
        return &s;
    s.cx = fuzz_open(&s.blocks, UINT64_C(64) << 20);
    if (qcc_read(s.cx, &source, NULL, &m) != QCC_OK ||
        qcc_compile(m, "--loss mse --optimizer adam:lr=1e-2", &step) != QCC_OK ||
        qcc_start(step, NULL, &s.session) != QCC_OK ||
        qcc_save(s.session, &(qcc_sink){ .write = gather, .user = &s }) != QCC_OK)
        abort();
    return &s;
}

/* A stored input names the model and the step of the day it was stored: it gets those of today. */
static void rename_step(const Stage *s, uint8_t *p, size_t n)
{
    static const char *const keys[] = { "\"qcc.model_hash\":\"", "\"qcc.step_hash\":\"" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const size_t k = strlen(keys[i]), all = k + SHA256_TEXT - 1;
        uint8_t *there = memmem(p, n, keys[i], k);
        const uint8_t *own = memmem(s->own, s->n_own, keys[i], k);
        if (there && own && (size_t)(p + n - there) >= all)
            memcpy(there, own, all);
    }
}

/* The digits of the hash become those of the bytes as they are now. */
static void rehash(uint8_t *p, size_t n)
{
    uint64_t head;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_TEXT];
    Sha256 sha;
    if (n < 8)
        return;
    memcpy(&head, p, 8);
    if (head > n - 8)
        return;
    char *digits = content_begin(&sha, (char *)p, (size_t)head + 8);
    if (!digits)
        return;
    sha256_add(&sha, p + 8 + head, n - 8 - (size_t)head);
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    memcpy(digits, hex, SHA256_TEXT - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    float before[FLAT], after[FLAT];
    Stage *s = stage();
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    rename_step(s, copy, size);
    rehash(copy, size);
    const qcc_source source = qcc_bytes(copy, size);
    if (qcc_get_flat(s->session, before, FLAT) != QCC_OK)
        abort();
    const qcc_status status = qcc_load(s->session, &source);
    if (status == QCC_INTERNAL || qcc_get_flat(s->session, after, FLAT) != QCC_OK)
        abort();
    if (status != QCC_OK && memcmp(before, after, sizeof before) != 0)
        abort();
    free(copy);
    return 0;
}
