/* Runs a conformance folder and prints a line for everything that does not pass. */
#include <stdio.h>
#include <string.h>

#include "api/suite.h"

static void tell(void *user, Verdict v, const char *name, const char *op, const char *why)
{
    (void)user;
    if (v != VERDICT_PASSED)
        printf("%s %s (%s): %s\n", v == VERDICT_FAILED ? "FAILED " : "skipped", name, op, why ? why : "");
}

int main(int argc, char **argv)
{
    Memory m;
    Arena arena;
    Diag d;
    SuiteCount count = { 0 };
    if (argc < 2) {
        fprintf(stderr, "usage: run_suite DIR [FILTER]\n");
        return 2;
    }
    memory_open(&m, NULL);
    arena_open(&arena, &m);
    diag_open(&d, &arena, NULL, NULL);
    const SuiteOptions o = { .filter = argc > 2 ? argv[2] : NULL, .tell = tell };
    const Status status = suite_run(&m, &d, argv[1], &o, &count);
    printf("%d passed, %d failed, %d skipped\n", count.passed, count.failed, count.skipped);
    arena_close(&arena);
    return status != OK ? (int)status : count.failed != 0;
}
