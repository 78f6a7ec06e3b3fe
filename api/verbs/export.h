/* Parts of the verb export. */
#ifndef API_VERBS_EXPORT_H
#define API_VERBS_EXPORT_H

#include "api/model/command.h"
#include "api/session/export_form.h"
#include "passes/target/target.h"

/* An exported file, and what it was made of. */
typedef struct Exported {
    qcc_step *step;       /* null: the model was exported as it is */
    qcc_session *session; /* with the states that went into the file */
    const char *path;
    ExportForm form;
    const char *weights; /* whose weights went into it, in words; null: there was no choice */
    const char *ptq;     /* what --ptq did, in lines; null: nothing */
    bool measures;       /* --verify has a target */
} Exported;

/* Whom a file with codes is for; null: it has floats. */
const char *export_codes_for(const Exported *e);

/* Who predicts what its target fuses. */
TargetPredictor export_predictor(const Exported *e);

/* Reads what --verify names, and complains of data that does not fit: before anything is written. */
Status export_verify_data(Command *c, Exported *e);

/* Compares the file with the training graph on these data, and prints what came out: MISMATCH when something
 * differs. */
Status export_verify(Command *c, const Exported *e);

#endif
