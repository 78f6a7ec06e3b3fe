/* Messages on their way to the host. */
#ifndef API_HALL_REPORT_H
#define API_HALL_REPORT_H

#include "api/hall/context.h"

/* The report function of the context's Diag: `user` is the qcc_context. */
void report_message(void *user, const Message *m);

/* How far a run is: one line without its end; a bar replaces the line before. */
void report_progress(qcc_context *cx, const char *text, bool bar);

/* Tells that memory ran out; needs none. */
void report_no_memory(qcc_context *cx);

/* Tells that a mistake of ours was met where there is no memory to say which. */
void report_mistake(qcc_context *cx);

#endif
