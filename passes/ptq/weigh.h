/* What weigh-quantizers makes: a graph whose gradients of factors of 1 say what each quantizer does to the loss. */
#ifndef PASSES_PTQ_WEIGH_H
#define PASSES_PTQ_WEIGH_H

#include "ir/own_names.h" /* WEIGH_PREFIX: its states */

#define WEIGH_GRAPH "sensitivity"

#endif
