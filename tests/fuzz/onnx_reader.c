/* libFuzzer: whatever bytes come, the ONNX reader ends in a message or a model, and a model comes back byte for byte. */
#include "frontends/onnx/file/payload.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const FuzzForm fuzz_form = FUZZ_WIRE;

typedef struct Run {
    Memory memory;
    Arena arena;
    Diag diag;
    Limits limits;
    const uint8_t *data;
    size_t size;
    const uint8_t *expected;
} Run;

static Status compare(void *user, const void *bytes, size_t n)
{
    Run *r = user;

    if (n > (size_t)(r->data + r->size - r->expected) || memcmp(r->expected, bytes, n) != 0)
        abort();
    r->expected += n;
    return OK;
}

/* An edit that changes nothing, in the innermost place there is: its prefixes are all written anew. */
static Status splice_back(Run *r, Spine *s, const Onnx__TensorProto *t)
{
    Edit e = { .within = t->source_at, .offset = t->source_at };
    Splice splice = { .source = &s->source,
                      .type = s->type,
                      .limits = &r->limits,
                      .diag = &r->diag,
                      .arena = &r->arena,
                      .edits = &e,
                      .n_edits = 1 };

    r->expected = r->data;
    Status status = splice_write(&splice, &(Sink){ compare, r }, NULL);
    if (status || r->expected != r->data + r->size)
        abort();
    return OK;
}

static void read_tensor(Run *r, Spine *s, const Onnx__TensorProto *t)
{
    TensorInfo info;

    if (tensor_info(s, &r->diag, "tensor", t, &info) || tensor_check(s, &r->diag, "tensor", t, &info))
        return;
    if (info.bytes > 16 * r->size + 16) /* what passed the check is backed by bytes of the file */
        abort();
    Status status = tensor_read(s, &r->diag, "tensor", t, arena_alloc(&r->arena, info.bytes), info.bytes);
    (void)status;
}

static Status read_model(void *arg)
{
    Run *r = arg;
    Spine s;

    arena_open(&r->arena, &r->memory);
    diag_open(&r->diag, &r->arena, NULL, NULL);
    source_memory(&s.source, &r->memory, "input", r->data, r->size);
    Status status = spine_read(&s, &r->memory, &r->diag, &r->limits, &onnx__model_proto__descriptor);
    if (status == INTERNAL)
        abort();
    if (status == OK) {
        const Onnx__GraphProto *g = s.model->graph;
        for (size_t i = 0; g && i < g->n_initializer; i++)
            read_tensor(r, &s, g->initializer[i]);
        if (g && g->n_initializer)
            (void)splice_back(r, &s, g->initializer[g->n_initializer - 1]);
        spine_close(&s);
    }
    arena_close(&r->arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run r = { .limits = LIMITS_DEFAULT, .data = data, .size = size };

    memory_open(&r.memory, NULL);
    if (guarded(&r.memory, read_model, &r) == INTERNAL)
        abort();
    if (r.memory.used)
        abort();
    return 0;
}
