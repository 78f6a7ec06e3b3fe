/* The files that a command line names: what is read, what is written, and that these are not the same. */
#ifndef API_MODEL_DESTINATIONS_H
#define API_MODEL_DESTINATIONS_H

#include "api/model/command.h"
#include "base/file_set.h"

/* Tells the set of the context what the line reads and writes; USAGE where something would be replaced that is read, or
 * two results have one place.  `prints`: results go to standard output. */
Status destinations_check(Command *c, FileSet *files, bool prints);

/* A destination that no option names and -o would change; USAGE as above. */
Status destination_add(qcc_context *cx, const char *path, const char *what);

#endif
