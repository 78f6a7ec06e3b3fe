/* How an update reads and writes a parameter and its states that are kept in few bits. */
#ifndef PASSES_STEP_UPDATE_FORMS_H
#define PASSES_STEP_UPDATE_FORMS_H

#include "ops/update/update.h"
#include "passes/engine/pass.h"

/* Which settings of parameters in few bits some parameter had. */
typedef struct FormsUsed {
    bool sticky, scale_decay, counts;
} FormsUsed;

/* Fills what the attributes of an update say of a parameter that is stored= by a quantizer, and its operands: scale, zero
 * points and a draw, built at `b`.  A parameter that is kept as it is gets none, and no say in what becomes of scales. */
Status update_form_of(UpdateForm *form, Build *b, PassRun *run, const OptimizerGroup *group, Node *x, Node **in);

/* Warns of such settings that are said and that no parameter had; USAGE where counts are asked for and there is nothing to
 * count. */
Status update_forms_unused(PassRun *run, const Recipe *recipe, FormsUsed used);

#endif
