/* The names that states, results and inputs of ours are given.  They are for people and files: who wants to know what a
 * value is asks its role (ir/role.h); role_by_name alone reads names, of texts and files that say no roles. */
#ifndef IR_OWN_NAMES_H
#define IR_OWN_NAMES_H

#define OWN_PREFIX       "qcc."
#define GRADIENT_PREFIX  "grad." /* behind it the state, or the output whose gradient the host gives */
#define SHADOW_PREFIX    OWN_PREFIX "shadow/"
#define EMA_PREFIX       OWN_PREFIX "ema/"
#define CLIPPED_PREFIX   OWN_PREFIX "clipped/"
#define RANGE_PREFIX     OWN_PREFIX "range/"     /* behind it the value whose range it remembers */
#define STEP_SIZE_PREFIX OWN_PREFIX "step_size/" /* the same: the logarithm of a scale that is learned */
#define WEIGH_PREFIX     OWN_PREFIX "weigh/"     /* behind it the value whose quantizer counts with that factor */
#define OFFSET_PREFIX    OWN_PREFIX "offset/" /* the same: the offset of its codes, or the code of 0, which are learned */
#define THRESHOLD_PREFIX OWN_PREFIX "threshold/" /* the same: logarithms of the intervals of levels that are learned */
#define BITS_PREFIX      OWN_PREFIX "bits/"      /* the same: how many bits its codes have, which are learned */
#define BUDGET_NAME      OWN_PREFIX "budget"     /* what the codes of weights take of a budget */
#define OBSERVED_PREFIX  OWN_PREFIX "observed/"  /* the same: the scale of a weight, while statistics count */
#define COUNTS_PREFIX    OWN_PREFIX "counts/"    /* behind it the state of whose updates it tells */
#define SCALE_NAME       OWN_PREFIX "scale"      /* of the loss */
#define SCALER_NAME      OWN_PREFIX "scaler"     /* counters of that scale */
#define STEP_NAME        OWN_PREFIX "step"
#define TOTAL_STEPS_NAME OWN_PREFIX "total_steps"
#define LR_FACTOR_WORD   "lr_factor"               /* as a host calls it */
#define LR_FACTOR        OWN_PREFIX LR_FACTOR_WORD /* of all rates; with /SELECTOR behind it, of a group's */
#define GRADIENT_SCALE   OWN_PREFIX "grad_scale"
#define LATCHED_SCALE    OWN_PREFIX "latched"
#define FOUND_NAME       OWN_PREFIX "found"
#define APPLIED_NAME     OWN_PREFIX "applied"
#define PHASE_GRAPH      "weights_first"            /* a graph that is run in place of @step, for the first steps */
#define PHASE_NAME       OWN_PREFIX "weights_first" /* its result that says for how many */
#define VALID_INPUT      OWN_PREFIX "valid"
#define HADAMARD_NAME    OWN_PREFIX "hadamard" /* signs of what is turned */

#endif
