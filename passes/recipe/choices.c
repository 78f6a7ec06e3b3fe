#include "passes/recipe/choices.h"

#include <string.h>

const Choice *choice_find(const Choices *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->list[i].name, name) == 0)
            return &c->list[i];
    return NULL;
}

size_t choices_count(const Choices *c, ChoiceKind kind, int64_t *elements)
{
    size_t n = 0;
    if (elements)
        *elements = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->list[i].kind != kind)
            continue;
        n++;
        if (elements)
            *elements += type_elements(c->list[i].type);
    }
    return n;
}
