/* --encodings: quantizers that another file says of values of a model. */
#ifndef API_EMIT_ENCODED_H
#define API_EMIT_ENCODED_H

#include "api/model/model.h"

/* A model whose graph is another one for a while. */
typedef struct Encoded {
    qcc_model *m;
    Graph *graph; /* its own; null: it is there all the time */
    Cleanup cleanup;
} Encoded;

/* Places the quantizers in a copy of the model's graph, where the option is given, and says what became of them: until
 * encoded_close() that is the graph of the model.  After an error it has its own. */
Status encoded_open(Encoded *e, qcc_model *m, const CommandLine *line);
void encoded_close(Encoded *e);

#endif
