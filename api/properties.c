/* The properties of a session: texts of the host that travel with checkpoints. */
#include <string.h>

#include "api/step.h"

const char *property_get(const qcc_session *s, const char *key)
{
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].key, key) == 0)
            return s->properties[i].value;
    return NULL;
}

static const char *text_in(Heap *heap, const char *text)
{
    const size_t n = strlen(text) + 1;
    return memcpy(heap_alloc(heap, n), text, n);
}

static void forget_text(qcc_session *s, const char *text)
{
    heap_free(&s->texts, (void *)(uintptr_t)text);
}

static void remove_property(qcc_session *s, size_t i)
{
    forget_text(s, s->properties[i].key);
    forget_text(s, s->properties[i].value);
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
    Property *p = &s->properties[s->n_properties];
    p->key = text_in(&s->texts, key);
    p->value = text_in(&s->texts, value);
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
        const char *text = text_in(&s->texts, value);
        forget_text(s, p[i].value);
        p[i].value = text;
    } else if (value) {
        add_property(s, key, value);
    }
}

void properties_replace(qcc_session *s, Heap *heap, const SafePair *pairs, size_t n)
{
    Property *all = heap_alloc(heap, (n + 1) * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (Property){ text_in(heap, pairs[i].key), text_in(heap, pairs[i].value) };
    while (s->n_properties)
        remove_property(s, s->n_properties - 1);
    heap_free(&s->texts, s->properties);
    heap_take(&s->texts, all);
    for (size_t i = 0; i < n; i++) {
        heap_take(&s->texts, (void *)(uintptr_t)all[i].key);
        heap_take(&s->texts, (void *)(uintptr_t)all[i].value);
    }
    s->properties = all;
    s->n_properties = n;
    s->cap_properties = n + 1;
}
