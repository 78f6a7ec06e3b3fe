/* A model made fit for codes (--ptq), by the batches that its quantizers see. */
#ifndef API_TRAIN_FIT_H
#define API_TRAIN_FIT_H

#include "api/ptq/ptq.h"
#include "api/train/train.h"

typedef struct Fit {
    Command *c;
    qcc_step *step;
    Session *run;
    const TrainData *data;
    Feed *feed;
    int64_t most; /* batches */
    const PtqPlan *plan;
    Status (*see)(void *user, int64_t most); /* lets quantizers see as many */
    void *user;
} Fit;

/* Does what the plan says; `told` is what was done, in lines. */
Status fit_codes(const Fit *f, const char **told);

#endif
