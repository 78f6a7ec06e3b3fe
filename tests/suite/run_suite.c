/* Runs a conformance folder and prints a line for everything that does not pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/verbs/suite.h"

enum { SKIP = 77 };

static void tell(void *user, Verdict v, const char *name, const char *op, const char *why)
{
    (void)user;
    if (v != VERDICT_PASSED)
        printf("%s %s (%s): %s\n", v == VERDICT_FAILED ? "FAILED " : "skipped", name, op, why ? why : "");
}

/* usage: run_suite DIR [--least N] [--exceptions FILE] [--filter TEXT] [--through qir|onnx] */
int main(int argc, char **argv)
{
    Memory m;
    Arena arena;
    Diag d;
    SuiteCount count = { 0 };
    SuiteOptions o = { .tell = tell };
    int least = 0;
    struct stat s;

    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--least") == 0)
            least = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--exceptions") == 0)
            o.exceptions = argv[i + 1];
        else if (strcmp(argv[i], "--filter") == 0)
            o.filter = argv[i + 1];
        else if (strcmp(argv[i], "--through") == 0)
            o.through = strcmp(argv[i + 1], "qir") == 0 ? FORM_QIR : FORM_ONNX;
    }
    if (argc < 2 || stat(argv[1], &s) != 0) {
        printf("skipped: no folder %s; package libonnx-testdata\n", argc < 2 ? "given" : argv[1]);
        return SKIP;
    }
    memory_open(&m, NULL);
    arena_open(&arena, &m);
    diag_open(&d, &arena, NULL, NULL);
    const Status status = suite_run(&m, &d, argv[1], &o, &count);
    printf("%d passed, %d failed, %d skipped\n", count.passed, count.failed, count.skipped);
    arena_close(&arena);
    if (count.passed < least)
        printf("fewer passed than the %d that must\n", least);
    return status != OK ? (int)status : count.failed != 0 || count.passed < least;
}
