/* What a page shows of a step beside its graphs. */
#ifndef API_MAKE_STEP_VIEW_H
#define API_MAKE_STEP_VIEW_H

#include "api/make/step.h"
#include "frontends/view/view.h"

/* The title of a model (null step) or of a step, and what became of each of its nodes; in the scratch arena. */
ViewFacts step_view(const qcc_model *m, const qcc_step *s);

#endif
