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
    int bits;                /* as a budget leaves it; 0: as it is */
    bool full;               /* the budget has no room for more of them */
} Sensitive;

/* What a budget counts: the bytes of the codes of weights, or bits of weights times bits of data for each multiply-add of a
 * sample in products that read quantized weights; data that are floats have 32. */
typedef enum BudgetUnit { BUDGET_BYTES, BUDGET_BITOPS } BudgetUnit;

typedef struct Sensitivity {
    Sensitive *list; /* the worst first */
    size_t n;
    int64_t batches;
    const char *observed; /* whose ranges were taken first, in words; null: ranges were known */
    int64_t rows;         /* samples of a batch */
    BudgetUnit unit;
    uint64_t taken, most; /* with these bits; what they may take: 0 where nobody says */
} Sensitivity;

/* Looks at --data with --target; all of it lives in the scratch of the call. */
Status train_sensitivity(Command *c, qcc_step *s, Sensitivity *out);

/* Reads [BYTES=|BITOPS=]SIZE and raises the bits of the worst, in their order, to 8 or as far as that reaches: of weights, and
 * for BITOPS of data; USAGE where what there is takes more. */
Status sensitivity_spend(Command *c, Sensitivity *s, const char *size);

/* Appends what each quantizer of a step does to the loss, where --sensitivity asks for it. */
Status explain_sensitivity(Text *t, Command *c, qcc_step *s, bool records);

#endif
