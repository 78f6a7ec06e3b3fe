/* The properties of a session: texts of the host that travel with checkpoints. */
#include <string.h>

#include "api/make/step.h"

const char *property_get(const qcc_session *s, const char *key)
{
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].key, key) == 0)
            return s->properties[i].value;
    return NULL;
}

/* Both texts in one block: it is there or not. */
static Property property_in(Heap *heap, const char *key, const char *value)
{
    const size_t n = strlen(key) + 1, m = strlen(value) + 1;
    char *block = heap_alloc(heap, n + m);
    memcpy(block, key, n);
    memcpy(block + n, value, m);
    return (Property){ block, block + n };
}

static void *block_of(const Property *p)
{
    return (void *)(uintptr_t)p->key;
}

static void remove_property(qcc_session *s, size_t i)
{
    heap_free(&s->texts, block_of(&s->properties[i]));
    s->properties[i] = s->properties[--s->n_properties];
}

/* Room for one more, and all that it needs, before anything is changed. */
static void add_property(qcc_session *s, const char *key, const char *value)
{
    if (s->n_properties == s->cap_properties) {
        const size_t cap = s->cap_properties * 2 + 8;
        Property *more = heap_alloc(&s->texts, cap * sizeof *more);
        if (s->n_properties)
            memcpy(more, s->properties, s->n_properties * sizeof *more);
        heap_free(&s->texts, s->properties);
        s->properties = more;
        s->cap_properties = cap;
    }
    s->properties[s->n_properties] = property_in(&s->texts, key, value);
    s->n_properties++;
}

void property_set(qcc_session *s, const char *key, const char *value)
{
    Property *p = s->properties;
    size_t i = 0;
    while (i < s->n_properties && strcmp(p[i].key, key) != 0)
        i++;
    if (!value && i < s->n_properties) {
        remove_property(s, i);
    } else if (value && i < s->n_properties) {
        const Property now = property_in(&s->texts, key, value);
        heap_free(&s->texts, block_of(&p[i]));
        p[i] = now;
    } else if (value) {
        add_property(s, key, value);
    }
}

void properties_replace(qcc_session *s, Heap *heap, const SafePair *pairs, size_t n)
{
    Property *all = heap_alloc(heap, (n + 1) * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = property_in(heap, pairs[i].key, pairs[i].value);
    while (s->n_properties)
        remove_property(s, s->n_properties - 1);
    heap_free(&s->texts, s->properties);
    heap_take(&s->texts, all);
    for (size_t i = 0; i < n; i++)
        heap_take(&s->texts, block_of(&all[i]));
    s->properties = all;
    s->n_properties = n;
    s->cap_properties = n + 1;
}
