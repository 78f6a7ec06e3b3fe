/* Parts of the verb export. */
#ifndef API_VERBS_EXPORT_H
#define API_VERBS_EXPORT_H

#include "api/make/step.h"
#include "api/model/command.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/step.h"

/* What an exported file is to be. */
typedef struct ExportForm {
    bool narrows; /* to narrow.to */
    NarrowOptions narrow;
    const char *dtype;   /* as the line says it */
    int64_t most_casts;  /* Cast and CastLike nodes it may have */
    WeightsKind weights; /* of a session */
} ExportForm;

/* Reads it from a line; what it points to lives in the scratch of the call. */
Status export_form(qcc_context *cx, const CommandLine *line, ExportForm *form);

/* USAGE for the text of a step, which has no model that could be deployed. */
Status export_has_model(const qcc_model *m);

/* Writes the deployable model, with final states (null: as it is).  MISMATCH when it would have more casts than it
 * may. */
Status export_model(qcc_model *m, const ExportForm *form, const FinalStates *states, Out *o);

/* Ends what was exported to: a file appears only when `status`, which is given back, is OK. */
Status export_close(Out *o, Status status);

/* An exported file, and what it was made of. */
typedef struct Exported {
    qcc_step *step;       /* null: the model was exported as it is */
    qcc_session *session; /* with the states that went into the file */
    const char *path;
    ExportForm form;
    const char *weights; /* whose weights went into it, in words; null: there was no choice */
    bool measures;       /* --verify has a target */
} Exported;

/* Reads what --verify names, and complains of data that does not fit: before anything is written. */
Status export_verify_data(Command *c, Exported *e);

/* Compares the file with the training graph on these data, and prints what came out: MISMATCH when something
 * differs. */
Status export_verify(Command *c, const Exported *e);

#endif
