#include "runtime/checkpoint/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "base/sha256.h"

typedef enum FieldKind { TEXT, COUNT_, NUMBER } FieldKind;

#define KIND_TEXT   TEXT
#define KIND_COUNT  COUNT_
#define KIND_NUMBER NUMBER

static const struct {
    const char *key;
    FieldKind kind;
    size_t at;
} fields[] = {
#define FIELD(kind, name, what) { "qcc." #name, KIND_##kind, offsetof(CheckpointInfo, name) },
    CHECKPOINT_FIELDS(FIELD)
#undef FIELD
};

static const char format_key[] = "qcc.format", property_prefix[] = "property.";

static int by_key(const void *a, const void *b)
{
    return strcmp(((const SafePair *)a)->key, ((const SafePair *)b)->key);
}

static const char *field_text(Arena *arena, const CheckpointInfo *info, size_t i)
{
    const void *p = (const char *)info + fields[i].at;
    char number[NUMBER_TEXT];
    switch (fields[i].kind) {
    case TEXT:
        return *(const char *const *)p;
    case COUNT_:
        return arena_printf(arena, "%" PRIu64, *(const uint64_t *)p);
    case NUMBER:
        return arena_copy(arena, number, f64_to_text(number, *(const double *)p));
    }
    return NULL;
}

SafePair *info_pairs(Arena *arena, const CheckpointInfo *info, size_t *n)
{
    SafePair *pairs = NEWS(arena, SafePair, COUNT(fields) + 2 + info->n_properties);
    size_t count = 0;
    pairs[count++] = (SafePair){ format_key, CHECKPOINT_FORMAT };
    pairs[count++] = (SafePair){ CHECKPOINT_HASH, "0000000000000000000000000000000000000000000000000000000000000000" };
    for (size_t i = 0; i < COUNT(fields); i++) {
        const char *text = field_text(arena, info, i);
        if (text)
            pairs[count++] = (SafePair){ fields[i].key, text };
    }
    for (size_t i = 0; i < info->n_properties; i++)
        pairs[count++] = (SafePair){ arena_printf(arena, "%s%s", property_prefix, info->properties[i].key),
                                     info->properties[i].value };
    qsort(pairs, count, sizeof *pairs, by_key);
    *n = count;
    return pairs;
}

static bool read_field(CheckpointInfo *info, size_t i, const char *text)
{
    void *p = (char *)info + fields[i].at;
    switch (fields[i].kind) {
    case TEXT:
        *(const char **)p = text;
        return true;
    case COUNT_:
        return u64_from_text(text, strlen(text), p);
    case NUMBER:
        return f64_from_text(text, strlen(text), p);
    }
    return false;
}

const char *info_read(Arena *arena, const SafeTensors *s, CheckpointInfo *info)
{
    const size_t prefix = sizeof property_prefix - 1;
    const char *format = safetensors_metadata(s, format_key);
    *info = (CheckpointInfo){ 0 };
    if (!format)
        return "is a safetensors file, but no checkpoint";
    if (strcmp(format, CHECKPOINT_FORMAT) != 0)
        return arena_printf(arena, "format %s, %s is known: made by a newer qcc", format, CHECKPOINT_FORMAT);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const char *text = safetensors_metadata(s, fields[i].key);
        if (text && !read_field(info, i, text))
            return arena_printf(arena, "%s is \"%s\", no number", fields[i].key, text);
        if (!text && fields[i].kind == COUNT_)
            return arena_printf(arena, "has no %s", fields[i].key);
    }
    if (!info->run)
        return "has no qcc.run";
    SafePair *properties = NEWS(arena, SafePair, s->n_metadata);
    for (size_t i = 0; i < s->n_metadata; i++)
        if (strncmp(s->metadata[i].key, property_prefix, prefix) == 0)
            properties[info->n_properties++] = (SafePair){ s->metadata[i].key + prefix, s->metadata[i].value };
    info->properties = properties;
    return NULL;
}

void checkpoint_run_id(char run[17], const CheckpointInfo *info)
{
    const char *const texts[] = { info->model_hash, info->step_hash, info->data };
    const uint64_t numbers[] = { info->seed, info->shuffle_key };
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_TEXT];
    Sha256 sha;
    sha256_begin(&sha);
    for (size_t i = 0; i < COUNT(texts); i++)
        sha256_add(&sha, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) + 1 : 1);
    for (size_t i = 0; i < COUNT(numbers); i++)
        for (int byte = 0; byte < 8; byte++)
            sha256_add(&sha, &(uint8_t){ (uint8_t)(numbers[i] >> 8 * byte) }, 1);
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    memcpy(run, hex, 16);
    run[16] = 0;
}
