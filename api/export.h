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
} Exported;

/* Compares the file with the training graph on the data of --verify, and prints what came out: MISMATCH when something
 * differs. */
Status export_verify(Command *c, const Exported *e);

#endif
