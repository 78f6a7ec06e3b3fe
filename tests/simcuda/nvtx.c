/* libnvToolsExt.so.1 of the simulated device: writes the ranges that it is told to the file QCC_SIM_RANGES, each as deep as it lies
 * in those that were pushed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvtxRangePushA(const char *name);
EXPORT int nvtxRangePop(void);
EXPORT uint64_t nvtxRangeStartA(const char *name);
EXPORT void nvtxRangeEnd(uint64_t id);

static int depth;
static uint64_t started, ended;

static void say(const char *what, const char *name)
{
    const char *path = getenv("QCC_SIM_RANGES");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "%*s%s%s%s\n", 2 * depth, "", what, *name ? " " : "", name);
    fclose(f);
}

int nvtxRangePushA(const char *name)
{
    say("push", name);
    return depth++;
}

int nvtxRangePop(void)
{
    depth--;
    say(depth < 0 ? "pop of nothing" : "pop", "");
    return depth;
}

uint64_t nvtxRangeStartA(const char *name)
{
    say("start", name);
    return ++started;
}

void nvtxRangeEnd(uint64_t id)
{
    ended++;
    say(id == 0 || id > started ? "end of nothing" : "end", "");
}

__attribute__((destructor)) static void audit(void)
{
    if (depth || started != ended)
        say("left open", "");
}
