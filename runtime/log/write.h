/* Lines into the file of a log. */
#ifndef RUNTIME_LOG_WRITE_H
#define RUNTIME_LOG_WRITE_H

#include "runtime/log/log.h"

/* Appends a line, all of it or nothing. */
Status log_write(Log *l, const char *line, size_t n);

#endif
