/* Values for the inputs of a model: do they fit, and what is missing. */
#ifndef API_MODEL_FIT_H
#define API_MODEL_FIT_H

#include "api/model/model.h"

/* Checks that a value (from `file`, which may be null) fits input i, and that symbolic dimensions of one name have
 * one size over all inputs given so far; `sizes` maps their names to sizes. */
Status fit_input(qcc_model *m, size_t i, const Tensor *value, const char *file, Map *sizes);

/* The index of an input by name; USAGE with the nearest name when there is none. */
Status find_input(qcc_model *m, const char *name, const char *option, size_t *i);
Status find_output(qcc_model *m, const char *name, const char *option, size_t *i);

#endif
