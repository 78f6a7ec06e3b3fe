/* Parts of the verb export. */
#ifndef API_EXPORT_H
#define API_EXPORT_H

#include "api/command.h"
#include "api/step.h"

/* An exported file, and what it was made of. */
typedef struct Exported {
    qcc_step *step;       /* null: the model was exported as it is */
    qcc_session *session; /* with the states that went into the file */
    const char *path;
    bool measures; /* --verify has a target */
} Exported;

/* Reads what --verify names, and complains of data that does not fit: before anything is written. */
Status export_verify_data(Command *c, Exported *e);

/* Compares the file with the training graph on these data, and prints what came out: MISMATCH when something
 * differs. */
Status export_verify(Command *c, const Exported *e);

#endif
