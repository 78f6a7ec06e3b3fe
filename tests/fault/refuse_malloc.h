/* The C library's own allocator, which libraries below use: in this program the n-th request of it may be refused. */
#ifndef TESTS_FAULT_REFUSE_MALLOC_H
#define TESTS_FAULT_REFUSE_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Whether requests can be refused here: sanitizers bring an allocator of their own. */
bool malloc_may_be_refused(void);

/* Serves `n` more requests and refuses the next, or all that follow. */
void malloc_refuse(size_t n, bool from_then_on);

/* Refuses no more; how many were. */
size_t malloc_serve(void);

#endif
