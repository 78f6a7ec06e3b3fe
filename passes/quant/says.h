/* What is said of each call of a model that is quantized. */
#ifndef PASSES_QUANT_SAYS_H
#define PASSES_QUANT_SAYS_H

#include "passes/quant/placement.h"

/* Notes of each call what --quant, tables and --quant-op say; USAGE where --quant-op selects nothing. */
Status quant_says(Placement *p);

#endif
