/* One kind of reduction in the four arithmetics; included once per kind by ops/reduce.h. */

#define REDUCE_PASTE(kind, part, T)  kind##_##part##_##T
#define REDUCE_PASTED(kind, part, T) REDUCE_PASTE(kind, part, T)
#define NAME(part)                   REDUCE_PASTED(REDUCE_KIND, part, T)
#define JOIN_OF(T, x, y)             REDUCE_JOIN(T, x, y)
#define LOAD_OF(T, v)                REDUCE_LOAD(T, v)
#define IDENTITY_OF(T)               REDUCE_IDENTITY(T)
#define EMPTY_OF(T)                  REDUCE_EMPTY(T)
#define LOAD(v)                      LOAD_OF(T, v)
#define COUNTER                      NAME(counter)
#define JOIN(x, y)                   JOIN_OF(T, x, y)

#define T f32
#include "ops/reduce/one.h"
#undef T
#define T f64
#include "ops/reduce/one.h"
#undef T
#define T i64
#include "ops/reduce/one.h"
#undef T
#define T u64
#include "ops/reduce/one.h"
#undef T

#undef JOIN
#undef COUNTER
#undef LOAD
#undef LOAD_OF
#undef EMPTY_OF
#undef IDENTITY_OF
#undef JOIN_OF
#undef NAME
#undef REDUCE_PASTED
#undef REDUCE_PASTE
#undef REDUCE_KIND
#undef REDUCE_LOAD
#undef REDUCE_JOIN
#undef REDUCE_IDENTITY
#undef REDUCE_EMPTY
