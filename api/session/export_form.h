/* The deployable model in the form that a line asks for. */
#ifndef API_SESSION_EXPORT_FORM_H
#define API_SESSION_EXPORT_FORM_H

#include "api/make/step.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/step.h"

/* What an exported file is to be. */
typedef struct ExportForm {
    bool narrows; /* to narrow.to */
    NarrowOptions narrow;
    const char *dtype;   /* as the line says it */
    const char *target;  /* whom it is for; null: whom the step was compiled for */
    int64_t most_casts;  /* Cast and CastLike nodes it may have */
    WeightsKind weights; /* of a session */
} ExportForm;

/* Reads it from a line; what it points to lives in the scratch of the call. */
Status export_form(qcc_context *cx, const CommandLine *line, ExportForm *form);

/* USAGE for the text of a step, which has no model that could be deployed. */
Status export_has_model(const qcc_model *m);

/* USAGE where nothing of a model that is not quantized here is for whom the form names (null: for nobody in particular). */
Status export_for(qcc_model *m, const ExportForm *form);

/* Writes the deployable model, with final states (null: as it is).  MISMATCH when it would have more casts than it
 * may. */
Status export_model(qcc_model *m, const ExportForm *form, const TrainedStates *states, Out *o);

/* Ends what was exported to: a file appears only when `status`, which is given back, is OK. */
Status export_close(Out *o, Status status);

#endif
