/* What handles point to. */
#include <stdio.h>
#include <stdlib.h>

#include "simcuda/world.h"

void *thing_new(ThingKind kind, CudaContext *context, size_t bytes)
{
    Thing *t = calloc(1, bytes);
    if (!t)
        abort();
    *t = (Thing){ kind, true, context, world.things };
    world.things = t;
    return t;
}

const char *thing_word(ThingKind kind)
{
    static const char *const words[] = { "context", "module", "function",         "stream",
                                         "event",   "graph",  "executable graph", "thing of a library" };
    return words[kind];
}

bool thing_lives(const void *handle, ThingKind kind, const char *call)
{
    for (const Thing *t = world.things; t; t = t->next)
        if (t == handle) {
            if (t->kind == kind && t->live)
                return true;
            report("%s of %s %s that %s", call, kind == EVENT || kind == MADE_GRAPH ? "an" : "a", thing_word(kind),
                   t->kind == kind ? "was destroyed" : "is none");
            return false;
        }
    if (handle)
        report("%s of a %s that the driver never made", call, thing_word(kind));
    return false;
}
