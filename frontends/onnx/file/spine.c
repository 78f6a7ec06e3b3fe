#include "frontends/onnx/file/spine.h"

#include <inttypes.h>

/* protobuf-c allocates through callbacks that must not jump, so its messages live in chunks of their own. */
struct SpineChunk {
    SpineChunk *older;
    size_t size;
    _Alignas(16) char bytes[];
};

enum { FIRST_CHUNK = 4096 - 64, LARGEST_CHUNK = 1 << 20, ALIGNMENT = 8 };

static bool add_chunk(Spine *s, size_t need)
{
    size_t want = s->chunks ? s->chunks->size * 2 : FIRST_CHUNK;

    if (want > LARGEST_CHUNK)
        want = LARGEST_CHUNK;
    if (want < need + sizeof(SpineChunk))
        want = need + sizeof(SpineChunk);
    SpineChunk *c = memory_try_block(s->memory, want);
    if (!c)
        return false;
    *c = (SpineChunk){ .older = s->chunks, .size = want };
    s->chunks = c;
    s->at = c->bytes;
    s->end = (char *)c + want;
    return true;
}

static void *message_alloc(void *user, size_t size)
{
    Spine *s = user;

    if (size > INT32_MAX || memory_stopped(s->memory)) /* unpack() jumps: protobuf-c's frames end first */
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (s->message_bytes + size > (uint64_t)s->limits.parse_bytes) {
        s->over_budget = true;
        return NULL;
    }
    if (size > (size_t)(s->end - s->at) && !add_chunk(s, size)) {
        s->out_of_memory = true;
        return NULL;
    }
    s->message_bytes += size;
    s->at += size;
    return s->at - size;
}

/* Nothing is given back one by one. */
static void message_free(void *user, void *block)
{
    (void)user, (void)block;
}

static void close_spine(void *thing)
{
    Spine *s = thing;

    while (s->chunks) {
        SpineChunk *older = s->chunks->older;
        memory_release(s->memory, s->chunks, s->chunks->size);
        s->chunks = older;
    }
    s->at = s->end = NULL;
    s->root = NULL;
}

void spine_keep(Spine *s)
{
    cleanup_drop(&s->cleanup);
    arena_keep(&s->arena);
    source_keep(&s->source);
}

void spine_close(Spine *s)
{
    cleanup_drop(&s->cleanup);
    close_spine(s);
    arena_close(&s->arena);
    source_close(&s->source);
}

static Status unpack(Spine *s, Diag *d, const uint8_t *bytes, size_t n)
{
    ProtobufCAllocator allocator = { .alloc = message_alloc, .free = message_free, .allocator_data = s };
    Place place = { .file = s->source.name, .byte = -1 };

    s->root = protobuf_c_message_unpack(s->type, &allocator, n, bytes);
    if (s->root)
        return OK;
    memory_poll(s->memory);
    if (s->over_budget)
        return fail(d, place, "reading exceeds the limit parse_bytes (%" PRId64 ")", s->limits.parse_bytes);
    if (s->out_of_memory)
        memory_exhausted(s->memory);
    return fail_as(d, INTERNAL, place, "protobuf-c refuses what the walk let pass");
}

Status spine_read(Spine *s, Memory *m, Diag *d, const Limits *limits, const ProtobufCMessageDescriptor *type)
{
    const uint8_t *bytes;
    size_t n;
    Arena scratch;

    s->memory = m;
    s->limits = *limits;
    s->type = type;
    s->chunks = NULL;
    s->at = s->end = NULL;
    s->root = NULL;
    s->message_bytes = 0;
    s->over_budget = s->out_of_memory = s->linked_data = false;
    arena_open(&s->arena, m);
    map_open(&s->external, &s->arena);
    cleanup_push(m, &s->cleanup, close_spine, s);

    arena_open(&scratch, m);
    Status status = skeleton_make(
        &(Wire){ .source = &s->source, .type = type, .limits = limits, .diag = d, .arena = &scratch }, &bytes, &n);
    if (status == OK)
        status = unpack(s, d, bytes, n);
    arena_close(&scratch);
    if (status == OK)
        status = source_unchanged(&s->source, d);
    if (status)
        spine_close(s);
    return status;
}

Status spine_open(Spine *s, Memory *m, Diag *d, const Limits *limits, const char *path)
{
    TRY(source_open(&s->source, m, d, path));
    return spine_read(s, m, d, limits, &onnx__model_proto__descriptor);
}
