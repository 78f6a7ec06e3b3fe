#include "simcuda/fibers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 1 << 17, GUARD = 1 << 12 };

struct FiberStack {
    char *from; /* its guard, then BYTES */
    FiberStack *next;
};

/* Given back last, taken first: threads that never wait run on one stack, which stays in the cache. */
static FiberStack *unused;

FiberStack *fiber_take(void (*entry)(void), void **at)
{
    FiberStack *s = unused;
    if (s) {
        unused = s->next;
    } else {
        s = malloc(sizeof *s);
        char *from =
            mmap(NULL, BYTES + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!s || from == MAP_FAILED || mprotect(from, GUARD, PROT_NONE) != 0) {
            fprintf(stderr, "simcuda: no memory for the stack of a thread\n");
            abort();
        }
        s->from = from;
    }
    /* What fiber_switch takes from a stack: six registers, and where it returns to. */
    void **top = (void **)(s->from + GUARD + BYTES) - 1;
    *top-- = NULL;
    *top = (void *)(uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    *at = top;
    return s;
}

void fiber_give(FiberStack *s)
{
    s->next = unused;
    unused = s;
}

int fiber_holds(const FiberStack *s, const void *at)
{
    return (const char *)at >= s->from + GUARD && (const char *)at < s->from + GUARD + BYTES;
}

int fiber_is_guard(const FiberStack *s, const void *at)
{
    return s && (const char *)at >= s->from && (const char *)at < s->from + GUARD;
}

/* swapcontext would ask the system for the mask of signals each time. */
#ifdef __x86_64__
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "    endbr64\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fiber_switch, .-fiber_switch\n");
#else
#error "the simulated device knows how x86-64 switches stacks"
#endif
