/* Lookups of codes, in the types that files look up. */
#ifndef PASSES_DEPLOY_GATHER_CODES_H
#define PASSES_DEPLOY_GATHER_CODES_H

#include "ops/card/make.h"

/* Codes or zero points of 4 bits as those of 8; others, and null, as they are. */
Node *codes_in_bytes(Build *b, Node *codes);

#endif
