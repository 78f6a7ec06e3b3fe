#include "ir/store/safetensors_head.h"

#include <inttypes.h>
#include <string.h>

enum { PREFIX = 8 };

static void add_pairs(Text *out, const SafePair *pairs, size_t n)
{
    text_add(out, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        text_add(out, i ? "," : "");
        text_json(out, pairs[i].key, strlen(pairs[i].key));
        text_char(out, ':');
        text_json(out, pairs[i].value, strlen(pairs[i].value));
    }
    text_char(out, '}');
}

static void add_entry(Text *out, const SafeEntry *e, uint64_t *offset)
{
    const char *name = safetensors_dtype(e->type->dtype);
    size_t bytes;
    if (!type_bytes(e->type, &bytes))
        memory_exhausted(out->arena->memory);
    text_json(out, e->name, strlen(e->name));
    text_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", name ? name : "U8");
    for (int i = 0; name && i < e->type->rank; i++)
        text_printf(out, "%s%" PRId64, i ? "," : "", e->type->dims[i]);
    if (!name)
        text_printf(out, "%zu", bytes);
    text_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *offset, *offset + bytes);
    *offset += bytes;
}

void safetensors_head(Text *out, const SafeEntry *entries, size_t n, const SafePair *pairs, size_t n_pairs)
{
    uint64_t offset = 0;
    const size_t start = out->n;
    text_bytes(out, (char[PREFIX]){ 0 }, PREFIX);
    text_char(out, '{');
    if (n_pairs)
        add_pairs(out, pairs, n_pairs);
    for (size_t i = 0; i < n; i++) {
        text_add(out, i || n_pairs ? "," : "");
        add_entry(out, &entries[i], &offset);
    }
    text_char(out, '}');
    while ((out->n - start) % PREFIX)
        text_char(out, ' ');
    const uint64_t length = out->n - start - PREFIX;
    for (int i = 0; i < PREFIX; i++)
        out->p[start + (size_t)i] = (char)(length >> 8 * i);
}
