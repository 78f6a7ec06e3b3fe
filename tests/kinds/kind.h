/* A value of any type that ONNX can state, put into a small model in any place where a value can stand. */
#ifndef TESTS_KINDS_KIND_H
#define TESTS_KINDS_KIND_H

#include "onnx_bytes.h"

enum { ELEMENTS = 28 }; /* of TensorProto.DataType, from 1 on */

/* What holds the elements. */
/* clang-format off */
#define HOLDERS(_)                          \
    _( TENSOR,       "tensor"             ) \
    _( SCALAR,       "scalar"             ) \
    _( UNRANKED,     "unranked tensor"    ) \
    _( SYMBOLIC,     "symbolic tensor"    ) \
    _( SPARSE,       "sparse tensor"      ) \
    _( SEQ,          "seq"                ) \
    _( SEQ_SEQ,      "seq of seq"         ) \
    _( OPTIONAL,     "optional"           ) \
    _( OPTIONAL_SEQ, "optional seq"       ) \
    _( MAP,          "map"                ) \
    _( SEQ_MAP,      "seq of map"         ) \
    _( OPAQUE,       "opaque"             )

/* Where it stands: what makes odd_v, and what becomes of it. */
#define ROLES(_)                                                  \
    _( INPUT,    "input",    "an input that a node reads"       ) \
    _( PASSED,   "passed",   "an input that is an output"       ) \
    _( IDLE,     "idle",     "an input that nobody reads"       ) \
    _( ONLY,     "only",     "input and output, and no other"   ) \
    _( WEIGHT,   "weight",   "an initializer that a node reads" ) \
    _( HELD,     "held",     "an initializer that is an output" ) \
    _( DEFAULT,  "default",  "an initializer that is an input"  ) \
    _( UNREAD,   "unread",   "an initializer nobody reads"      ) \
    _( CONSTANT, "constant", "a Constant"                       ) \
    _( CAST,     "cast",     "what Cast makes"                  ) \
    _( MADE,     "made",     "a container that a node makes"    ) \
    _( BATCHED,  "batched",  "an input and a weight in one"     ) \
    _( BRANCH,   "branch",   "what an If hands on"              )
/* clang-format on */

typedef enum Holder {
#define ENUMERATOR(id, text) HOLD_##id,
    HOLDERS(ENUMERATOR)
#undef ENUMERATOR
        N_HOLDERS
} Holder;

typedef enum Role {
#define ENUMERATOR(id, text, what) ROLE_##id,
    ROLES(ENUMERATOR)
#undef ENUMERATOR
        N_ROLES
} Role;

typedef struct Kind {
    int element; /* TensorProto.DataType */
    Holder holder;
    Role role;
} Kind;

/* "f32", "complex64", as messages call it. */
const char *element_name(int element);
const char *holder_name(Holder h);
const char *role_name(Role r);

/* Whether there is such a model. */
bool kind_exists(Kind k);

/* The model: h = MatMul(a f32[2,3], w f32[3,2]) beside a value odd_v of this kind; results h and odd_o. */
Bytes kind_model(Kind k);

/* A value of it in the form of test data; empty where that has none. */
Bytes kind_value(Kind k);

#endif
