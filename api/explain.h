/* Parts of the verb explain. */
#ifndef API_EXPLAIN_H
#define API_EXPLAIN_H

#include "api/command.h"

/* Everything about the nodes that the --node selectors match. */
Status explain_nodes(Command *c, qcc_model *m, const Map *paths);

#endif
