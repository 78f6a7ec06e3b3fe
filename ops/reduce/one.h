/* One kind of reduction in one arithmetic. */
#include "ops/reduce/part.h"
#ifndef __CUDACC__ /* host */
#include "ops/reduce/row.h"
#include "ops/reduce/column.h"
#endif /* host */
