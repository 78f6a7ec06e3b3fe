/* What a host calls, over a model of a kind. */
#ifndef TESTS_KINDS_HOST_H
#define TESTS_KINDS_HOST_H

#include "kinds/kind.h"
#include "qcc/qcc.h"

enum { HOST_RUN, HOST_BIND, HOST_PUT, HOST_VIEW, HOST_PLAN, HOST_CALLS };

/* Their names. */
extern const char *const host_calls[HOST_CALLS];

/* Carries one out, and closes the context; what it answered. */
int host_call(qcc_context *cx, Kind k, size_t call);

#endif
