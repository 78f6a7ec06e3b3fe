/* Work that says nothing: what it had to say was said before, and why it fails is for its caller to tell. */
#ifndef API_HALL_QUIET_H
#define API_HALL_QUIET_H

#include "base/diag.h"
#include "base/memory.h"

/* Lives on the stack of whoever works, from quiet_begin to quiet_end. */
typedef struct Quiet {
    Diag *diag, before;
    Cleanup cleanup;
    const Message *first; /* error; null: none */
} Quiet;

/* Lets messages be heard by nobody but `q`, which keeps the first error; warnings are no errors meanwhile. */
void quiet_begin(Quiet *q, Memory *memory, Diag *diag);

/* Lets messages be heard as before; also where the work is left by guarded(). */
void quiet_end(Quiet *q);

#endif
