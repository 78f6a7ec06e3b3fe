/* What a model may ask for.  Every rejection names the limit by the name it has here. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

/* clang-format off */
/*     field               default          what it bounds                                        */
#define LIMITS(_)                                                                                    \
    _( model_bytes,        2147483647,      "bytes of one model message"                           ) \
    _( wire_nesting,       100,             "nesting of messages"                                  ) \
    _( graph_nesting,      32,              "nesting of graphs"                                    ) \
    _( type_nesting,       32,              "nesting of types"                                     ) \
    _( functions,          10000,           "model-local functions"                                ) \
    _( call_depth,         100,             "calls of functions inside functions"                  ) \
    _( inlined_nodes,      4000000,         "nodes after functions are inlined"                    ) \
    _( nodes,              4000000,         "nodes"                                                ) \
    _( values,             8000000,         "values"                                               ) \
    _( initializers,       1000000,         "initializers"                                         ) \
    _( attributes,         1024,            "attributes of a node"                                 ) \
    _( node_io,            65536,           "inputs or outputs of a node"                          ) \
    _( name_bytes,         4096,            "bytes of a name"                                      ) \
    _( op_bytes,           256,             "bytes of an operator or domain name"                  ) \
    _( string_bytes,       16777216,        "bytes of a string attribute"                          ) \
    _( rank,               16,              "dimensions of a tensor"                               ) \
    _( dim,                1099511627776,   "one dimension"                                        ) \
    _( elements,           70368744177664,  "elements of a tensor"                                 ) \
    _( ints,               65536,           "integers of an attribute"                             ) \
    _( fold_output,        67108864,        "bytes of one folded constant"                         ) \
    _( fold_total,         536870912,       "bytes of all folded constants"                        ) \
    _( fold_work,          1000000000,      "scalar operations spent on folding"                   ) \
    _( unrolled_nodes,     100000,          "nodes that turns of unrolled loops add"               ) \
    _( parse_bytes,        4294967296,      "memory for reading a model, weights apart"            ) \
    _( external_files,     1024,            "external data files"                                  ) \
    _( messages,           10000,           "messages reported"                                    ) \
    _( eval_bytes,         17179869184,     "bytes of one tensor that is computed"                 ) \
    _( loop_iterations,    1000000,         "turns of all loops of one evaluation"                 ) \
    _( data_bytes,         4294967296,      "bytes of data files held in memory: inflated or parsed") \
    _( selector_states,    2000,            "states of one selector, its counts multiplied out"    )
/* clang-format on */

typedef struct Limits {
#define FIELD(name, value, what) int64_t name;
    LIMITS(FIELD)
#undef FIELD
} Limits;

#define LIMIT_VALUE(name, value, what) .name = value,
#define LIMITS_DEFAULT                 ((Limits){ LIMITS(LIMIT_VALUE) })

#endif
