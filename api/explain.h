/* Parts of the verb explain. */
#ifndef API_EXPLAIN_H
#define API_EXPLAIN_H

#include "api/command.h"

/* Everything about the nodes that the --node selectors match. */
Status explain_nodes(Command *c, qcc_model *m, const Map *paths);

/* Whether a path is a folder that a diverged step left. */
bool explain_is_diverged(const char *path);

/* Replays the step and says which value was the first that was not finite. */
Status explain_diverged(Command *c, const char *folder);

#endif
