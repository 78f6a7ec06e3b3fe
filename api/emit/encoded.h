/* --encodings: quantizers that another file says of values of a model. */
#ifndef API_EMIT_ENCODED_H
#define API_EMIT_ENCODED_H

#include "api/model/model.h"

/* Places them in the model's graph, where the option is given, and says what became of them. */
Status emit_encoded(qcc_model *m, const CommandLine *line);

#endif
