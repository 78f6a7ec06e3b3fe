/* What unit and table tests share: cmocka, a context, and a guard. */
#ifndef TESTS_TESTING_H
#define TESTS_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#undef fail /* ours reports to the user */

#include <stdio.h>
#include <string.h>

#include "ops/card/cards.h"

typedef struct Context {
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    Heap heap;
    const char *last; /* text of the last message */
} Context;

static inline void context_report(void *user, const Message *m)
{
    Context *c = user;
    Text t;
    text_open(&t, &c->arena);
    message_print(&t, m);
    c->last = text_get(&t);
}

static inline void context_open(Context *c)
{
    memset(c, 0, sizeof *c);
    memory_open(&c->memory, NULL);
    arena_open(&c->arena, &c->memory);
    diag_open(&c->diag, &c->arena, context_report, c);
    ir_open(&c->ir, &c->arena, &ops_table, &c->diag);
    heap_open(&c->heap, &c->memory);
}

/* Everything must have been given back. */
static inline void context_close(Context *c)
{
    heap_close(&c->heap);
    arena_close(&c->arena);
    assert_int_equal(c->memory.used, 0);
}

/* Runs a test body with a context, guarded; the body returns OK. */
static inline void with_context(Status (*body)(void *context))
{
    Context c;
    context_open(&c);
    const Status status = guarded(&c.memory, body, &c);
    if (status != OK)
        print_error("%s\n", c.last ? c.last : "no message");
    assert_int_equal(status, OK);
    context_close(&c);
}

#endif
