/* Messages on their way to the host. */
#ifndef API_REPORT_H
#define API_REPORT_H

#include "api/context.h"

/* The report function of the context's Diag: `user` is the qcc_context. */
void report_message(void *user, const Message *m);

/* Tells that memory ran out; needs none. */
void report_no_memory(qcc_context *cx);

#endif
