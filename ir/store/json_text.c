#include "ir/store/json_text.h"

static bool has_memory(void)
{
    json_t *small = json_loads("{\"a\":[\"b\",1]}", 0, NULL);
    json_decref(small);
    return small != NULL;
}

/* Room for the longest string that the text may hold, which the parser does not miss when it is not there. */
static bool has_room(Memory *memory, size_t n)
{
    void *room = memory_try_block(memory, n + 1);
    if (room)
        memory_release(memory, room, n + 1);
    return room != NULL;
}

json_t *json_text(Memory *memory, const char *text, size_t n, size_t flags, json_error_t *error)
{
    if (!has_room(memory, n))
        memory_exhausted(memory);
    json_t *all = json_loadb(text, n, flags, error), *again = json_loadb(text, n, flags, error);
    const bool same = all && again ? json_equal(all, again) : all == again;
    const bool lacks = !same || (!all && (json_error_code(error) == json_error_out_of_memory || !has_memory()));
    json_decref(again);
    if (lacks) {
        json_decref(all);
        memory_exhausted(memory);
    }
    return all;
}

bool json_nests(Str json, int deepest)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.n; i++) {
        const char c = json.p[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[') && ++depth > deepest)
            return true;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
    }
    return false;
}
