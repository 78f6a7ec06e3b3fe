/* Running a model on the device of its context. */
#ifndef API_MODEL_EVALUATE_H
#define API_MODEL_EVALUATE_H

#include "api/model/model.h"
#include "passes/target/target.h"

/* Whom the file says that its codes are computed for; null: nobody. */
Status model_target(const qcc_model *m, const QuantTarget **t, Arena *arena);

/* Whether a word is one of an operator, to which `ops` is the table. */
bool model_has_operator(const void *ops, const char *word);

/* Runs take-integers or train-integers on a graph of the model, as that target computes. */
Status model_take_integers(const qcc_model *m, Graph *g, const char *pass);

/* Evaluates; m->results holds what came out until the next evaluation.  Results of the one before go first. */
Status model_evaluate(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs);

/* The value that input i, a state, begins with. */
Status model_initial(qcc_model *m, size_t i, const Tensor **value);

#endif
