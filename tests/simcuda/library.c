/* What libraries on top of the simulated driver ask of it (sim.h): their calls are counted, fail, and are late as its own. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/calls.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int simcuda_enter(const char *call)
{
    return call_begin(call, NEEDS_CONTEXT);
}

EXPORT int simcuda_leave(int code)
{
    return call_end(code);
}

EXPORT void *simcuda_hold(const char *word, size_t bytes)
{
    LibraryThing *t = thing_new(OF_LIBRARY, call_context(), sizeof *t + bytes);
    t->word = word;
    return t->data;
}

static LibraryThing *thing_of(const void *data)
{
    return (LibraryThing *)(uintptr_t)((const char *)data - offsetof(LibraryThing, data));
}

EXPORT void simcuda_let_go(void *data)
{
    thing_of(data)->thing.live = false;
}

EXPORT int simcuda_holds(const void *data, const char *word, const char *call)
{
    if (!data) {
        report("%s: the %s is null", call, word);
        return 0;
    }
    const LibraryThing *t = thing_of(data);
    if (!thing_lives(t, OF_LIBRARY, call))
        return 0;
    if (strcmp(t->word, word) == 0)
        return 1;
    report("%s of a %s, which is a %s", call, word, t->word);
    return 0;
}

EXPORT int simcuda_queue(void *stream, SimWork *work, const void *data, size_t bytes)
{
    CudaStream *s = call_stream(stream, "work of a library");
    if (!s)
        return E_INVALID_HANDLE;
    return queue_add(
        &(Op){ .kind = OP_WORK, .stream = s, .work = work, .bytes = bytes, .arguments = (char *)(uintptr_t)data });
}

EXPORT int simcuda_capability(void)
{
    return call_capability();
}

EXPORT double simcuda_time(int which)
{
    const char *word = getenv("QCC_SIM_TIMES");
    for (int i = 0; word && i < which; i++) {
        word = strchr(word, ',');
        word += word != NULL;
    }
    return word ? strtod(word, NULL) : 0;
}

EXPORT void simcuda_spend(double milliseconds)
{
    world.spent += milliseconds;
}

EXPORT int simcuda_touch(const void *at, size_t bytes, int how, const char *call)
{
    char text[160];
    const CudaAddress where = (uintptr_t)at;
    const char *does = how & SIM_WRITES ? "writes" : "reads";
    if (!dram_holds(where, bytes)) {
        report("%s %s %zu bytes at %s", call, does, bytes, dram_say(at, text, sizeof text));
        return 0;
    }
    if (how & SIM_READS && !check_is_written(where, bytes)) {
        report("%s reads what nobody wrote: %s", call, dram_say(at, text, sizeof text));
        return 0;
    }
    if (how & SIM_WRITES)
        check_wrote(where, bytes);
    return 1;
}

EXPORT void simcuda_complain(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    report("%s", text);
}
