/* The verbs of the command, one file each. */
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

Status command_compile(Command *c);
Status command_train(Command *c);
Status command_measure(Command *c);
Status command_predict(Command *c);
Status command_run(Command *c);
Status command_check(Command *c);
Status command_emit(Command *c);
Status command_export(Command *c);

Status command_explain(Command *c);
Status command_diff(Command *c);
Status command_list_ops(Command *c);
Status command_print_table(Command *c);
Status command_doctor(Command *c);
Status command_help(Command *c);

/* Whether this build has a verb. */
bool command_has(Verb v);

/* Reads the i-th model of the line; it belongs to the context. */
Status command_model(Command *c, size_t i, qcc_model **model);

/* USAGE unless the line has exactly n models. */
Status command_wants(Command *c, size_t n);

/* What the evaluator is asked for by --seed, --threads and --rng. */
EvalOptions command_eval(Command *c);

#endif
