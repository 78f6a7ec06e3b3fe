/* What the verbs of the command share. */
#ifndef API_MODEL_COMMAND_H
#define API_MODEL_COMMAND_H

#include "api/hall/out.h"
#include "api/model/model.h"

/* A command line being carried out. */
typedef struct Command {
    qcc_context *cx;
    CommandLine line;
    Out *out; /* results */
} Command;

/* Reads the i-th model of the line; it belongs to the context. */
Status command_model(Command *c, size_t i, qcc_model **model);

/* USAGE unless the line has exactly n models. */
Status command_wants(Command *c, size_t n);

/* What the evaluator is asked for by --seed, --threads and --rng. */
EvalOptions command_eval(Command *c);

#endif
