/* What each quantizer of a step does to its loss, and the bits that a budget allows. */
#ifndef API_TRAIN_SENSITIVITY_H
#define API_TRAIN_SENSITIVITY_H

#include "api/train/train.h"
#include "passes/quant/ledger.h"

/* A quantizer: the value, and |sum of its gradient times what quantizing changes of it|, the mean over batches, of the last
 * 32 a moving one. */
typedef struct Sensitive {
    const char *value;
    double change;
    const QuantDecision *of; /* who asked for it, and its words; null: nobody says */
    int bits;                /* of a weight, as a budget leaves it; 0: as it is */
} Sensitive;

typedef struct Sensitivity {
    Sensitive *list; /* the worst first */
    size_t n;
    int64_t batches;
    const char *observed; /* whose ranges were taken first, in words; null: ranges were known */
    uint64_t bytes, most; /* of codes of weights with these bits; what they may take: 0 where nobody says */
} Sensitivity;

/* Looks at --data with --target; all of it lives in the scratch of the call. */
Status train_sensitivity(Command *c, qcc_step *s, Sensitivity *out);

/* Raises the bits of the worst weights, in their order, to 8 or as far as `most` bytes reach; USAGE where what there is takes
 * more. */
Status sensitivity_spend(Command *c, Sensitivity *s, uint64_t most);

/* Appends what each quantizer of a step does to the loss, where --sensitivity asks for it. */
Status explain_sensitivity(Text *t, Command *c, qcc_step *s, bool records);

#endif
