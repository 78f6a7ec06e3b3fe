#include "ir/json_text.h"

static bool has_memory(void)
{
    json_t *small = json_loads("{\"a\":[\"b\",1]}", 0, NULL);
    json_decref(small);
    return small != NULL;
}

json_t *json_text(Memory *memory, const char *text, size_t n, size_t flags, json_error_t *error)
{
    enum { TRIES = 2 }; /* a text that is wrong stays wrong */
    json_t *all = NULL;
    for (int i = 0; i < TRIES && !all; i++)
        all = json_loadb(text, n, flags, error);
    if (!all && (json_error_code(error) == json_error_out_of_memory || !has_memory()))
        memory_exhausted(memory);
    return all;
}
