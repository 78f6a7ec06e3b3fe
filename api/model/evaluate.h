/* Running a model on the device of its context. */
#ifndef API_MODEL_EVALUATE_H
#define API_MODEL_EVALUATE_H

#include "api/model/model.h"

/* Evaluates; m->results holds what came out until the next evaluation.  Results of the one before go first. */
Status model_evaluate(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs);

/* The value that input i, a state, begins with. */
Status model_initial(qcc_model *m, size_t i, const Tensor **value);

#endif
