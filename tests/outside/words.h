/* The words of somebody who has one more than we: what docs/ops.md says. */
#ifndef TESTS_OUTSIDE_WORDS_H
#define TESTS_OUTSIDE_WORDS_H

#include "ops/card/attrs.h"
#include "ops/card/cards.h"
#include "outside/attrs.h"
#include "outside/number.h"

#endif
