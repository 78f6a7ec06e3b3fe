#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <string.h>

/* The first function that it lacks; null: it has all. */
static const char *find_symbols(const Library *library, void *loaded, void *table)
{
    for (size_t i = 0; i < library->n; i++) {
        void *symbol = dlsym(loaded, library->symbols[i].name);
        if (!symbol)
            return library->symbols[i].name;
        memcpy((char *)table + library->symbols[i].at, &symbol, sizeof symbol);
    }
    return NULL;
}

const char *library_find(const Library *library, void *table, Arena *arena, const char **why)
{
    *why = NULL;
    for (const char *const *name = library->names; *name; name++) {
        /* It stays loaded: it is large, and threads of its own may outlive a call. */
        void *loaded = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!loaded) {
            const char *error = dlerror();
            if (!*why)
                *why = arena_string(arena, error ? error : "not found");
            continue;
        }
        const char *lacks = find_symbols(library, loaded, table);
        dlclose(loaded);
        *why = lacks ? arena_printf(arena, "%s has no %s", *name, lacks) : library->begin(table, arena);
        if (!*why)
            return *name;
    }
    return NULL;
}
