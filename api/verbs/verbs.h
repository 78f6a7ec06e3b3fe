/* The verbs of the command, one file each. */
#ifndef API_VERBS_VERBS_H
#define API_VERBS_VERBS_H

#include "api/model/command.h"

Status command_compile(Command *c);
Status command_measure(Command *c);
Status command_predict(Command *c);
Status command_run(Command *c);
Status command_check(Command *c);
Status command_emit(Command *c);
Status command_bench(Command *c);
Status command_export(Command *c);

Status command_explain(Command *c);
Status command_diff(Command *c);
Status command_list_ops(Command *c);
Status command_print_table(Command *c);
Status command_print_quantizer(Command *c);
Status command_doctor(Command *c);
Status command_help(Command *c);

/* Whether this build has a verb. */
bool command_has(Verb v);

#endif
