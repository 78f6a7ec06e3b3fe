/* The arithmetic of one element, for the host and for kernels.
 *
 * The text is the common subset of C11 and CUDA C++: the host compiles it, and cmake/prelude.cmake joins the parts
 * below, in this order, into the prelude of every kernel.  The f32 functions give the same bits wherever they are
 * compiled with contraction off and without fast-math: they use + - * / sqrt, explicit fused multiply-adds, integers
 * and selects, and nothing of libm.  The f64 functions call the platform's libm and promise no bits.
 *
 * A row names a function by its q_ name (ops/scalar/names.h), which picks the arithmetic from its first argument. */
#ifndef QCC_OPS_SCALAR_H
#define QCC_OPS_SCALAR_H

#include "ops/scalar/word.h"
#include "ops/scalar/round.h"
#include "ops/scalar/exp.h"
#include "ops/scalar/log.h"
#include "ops/scalar/trig.h"
#include "ops/scalar/arc.h"
#include "ops/scalar/hyper.h"
#include "ops/scalar/erf.h"
#include "ops/scalar/power.h"
#include "ops/scalar/integer.h"
#include "ops/scalar/modulo.h"
#include "ops/scalar/double.h"
#include "ops/scalar/turn.h"
#include "ops/scalar/names.h"
#include "ops/scalar/quant.h"
#include "ops/scalar/levels.h"
#include "ops/scalar/resize.h"
#include "base/half.h"
#include "base/philox.h"
#include "ops/scalar/random.h"

#endif
