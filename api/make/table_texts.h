/* Tables that options name, as texts: a step holds them, so that it can be made again without their files. */
#ifndef API_MAKE_TABLE_TEXTS_H
#define API_MAKE_TABLE_TEXTS_H

#include "api/make/step.h"
#include "frontends/onnx/step.h"

/* Reads the machine that --datapath names, into the recipe: before what it has to say of quantizers is read. */
Status step_read_datapath(qcc_step *s, const CommandLine *line);

/* Reads the tables that a line names, into the recipe. */
Status step_read_tables(qcc_step *s, const CommandLine *line);

/* Adds the tables of a step to its notes, which have room for TABLE_KINDS more; and reads them back. */
void step_tables_to_notes(qcc_step *s, StepNote *list, size_t *n);
Status step_tables_from_notes(qcc_step *s, const StepNotes *notes);

/* What stands for the value of an option in the identity of a step: of one that names a table the content of that. */
const char *step_table_identity(const qcc_step *s, Option option, const char *value);

#endif
