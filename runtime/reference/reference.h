/* The engine `reference`: the evaluator, whose bits are what every other engine is held to.  Values are tensors of the
 * host, so that nothing is copied which is got, lent or moved. */
#ifndef RUNTIME_REFERENCE_REFERENCE_H
#define RUNTIME_REFERENCE_REFERENCE_H

#include "runtime/engine.h"

extern const Engine engine_reference;

#endif
