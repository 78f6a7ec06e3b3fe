/* What a card must say about an op.  Floors above read cards through an OpTable; nobody switches over ops. */
#ifndef IR_OP_H
#define IR_OP_H

#include "ir/attr.h"
#include "ir/tensor.h"

typedef struct Ir Ir;
typedef struct Node Node;
typedef struct Graph Graph;
typedef struct Build Build;
typedef struct Rng Rng;
typedef struct Eval Eval;
typedef struct ReverseRun ReverseRun;
typedef struct Row Row;

/* The words.  Cards are in ops/; a table may hold more ops than these. */
typedef enum OpWord {
#define OP(word) OP_##word,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} OpWord;
typedef uint16_t Op;

/* Attributes of the words that the language itself knows. */
typedef struct ValueAttr {
    Payload *value; /* of const and param */
} ValueAttr;

/* What an input, a state or a result is to a training step (ir/role.h); zero: nothing beyond what it is anyway. */
typedef struct RoleMark {
    int role;       /* StateRole, InputRole or ResultRole */
    const char *of; /* of which state (of an input: of which result), interned; null: of none */
} RoleMark;

typedef struct StateAttr {
    Payload *value; /* the initial value; null: zeros */
    RoleMark mark;
    const char *stored; /* of what is written by a quantizer: its words; null: values are kept as they are */
} StateAttr;

typedef struct InputAttr {
    RoleMark mark;
} InputAttr;

typedef struct PartAttr {
    int64_t index;
} PartAttr;

typedef struct CastAttr {
    int to; /* DType + 1 */
    bool saturate;
    int round_mode; /* index into cast_round_modes: up, down, nearest */
} CastAttr;

/* The question `infer` answers: the result type of a call. */
typedef struct Infer {
    Ir *ir;
    Types *types;
    const struct OpDef *def;
    const void *attr;
    int n_in;
    const Type *const *in; /* null: absent operand */
    const Tensor *const
        *value; /* of operands that are constants; null: those of `nodes` are read when they are wanted */
    Node *const *nodes;
    int n_out;            /* results asked for */
    const Type *declared; /* what the node says it is; null while it is being built */
    Graph *const *regions;
    int n_regions;
    const char *complaint; /* set by infer_fail */
    Arena *scratch;
} Infer;

/* The value of an operand that is a small constant; null otherwise.  Nothing is read that no operator asks for: weights
 * may lie in files that nobody else touches. */
const Tensor *infer_known(const Infer *q, int i);

/* States why a call is illegal; returns null, for infer to return. */
const Type *infer_fail(Infer *q, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts the first n_out of `n` results together: the type itself, or a tuple. */
const Type *infer_results(Infer *q, int n, const Type *const *results);

/* Place of a call: what `expand` and `adjoint` build from. */
typedef struct Site {
    const void *attr;
    int n_in;
    Node *const *in;            /* null: absent */
    const Tensor *const *value; /* constants among the operands; the array is never null */
    const Type *type;           /* of the call's result */
    int n_out;
    Node *const *y;    /* adjoint: the results of the call */
    Node *const *dout; /* adjoint: what arrives at each result; null: nothing */
    const bool *want;  /* adjoint: operands whose gradient somebody reads */
    Graph *const *regions;
    int n_regions;
    Node *call;      /* adjoint: the call itself */
    ReverseRun *run; /* adjoint: who asks */
} Site;

/* Same input, same result?  Some ops draw, some behave differently in training. */
typedef enum OpMode { MODE_PURE, MODE_RANDOM, MODE_TRAINING } OpMode;

/* Classes of mixed precision (docs/ops.md); AMP_UNSET fails the table test. */
typedef enum AmpClass {
    AMP_UNSET,
    AMP_T,  /* computes narrow, accumulates f32 */
    AMP_S,  /* f32 inside, narrow edges */
    AMP_FO, /* f32 out */
    AMP_FI, /* never narrow its input for it */
    AMP_F,  /* f32 */
    AMP_EX, /* range-expanding elementwise */
    AMP_E,  /* benign elementwise */
    AMP_W,  /* all operands to the widest */
    AMP_P,  /* moves data */
    AMP_PW, /* moves data of several operands of one type */
    AMP_PM, /* monotone: rounding commutes */
    AMP_N,  /* no float data */
    AMP_X,  /* its type is its meaning */
    AMP_C,  /* depends on attribute or operand: amp_when decides */
} AmpClass;

typedef enum AmpReason {
    REASON_NONE,
    REASON_RANGE,
    REASON_PRECISION,
    REASON_INDEX,
    REASON_SCHEMA,
    REASON_KERNEL,
    REASON_MEANING,
} AmpReason;

/* Which casts between f32 and 16 bits change places with a call, not a bit of the result changing. */
typedef enum CastMotion {
    CASTS_BY_CLASS, /* as the class says: both where elements move, widening ones where rounding commutes */
    CASTS_UP,       /* widening ones */
    CASTS_BOTH,
} CastMotion;

typedef struct AmpCard {
    AmpClass f16, bf16;
    uint32_t wide; /* operands kept f32 although the node is narrow, a bit each */
    AmpReason reason;
    AmpClass (*when)(const Node *n, DType target); /* of AMP_C */
    uint32_t wide_out;                             /* results that stay f32, a bit each */
    uint32_t nonzero;                              /* operands that epsilons keep off zero, a bit each */
    uint32_t lifts; /* operands below which the result does not come while no other one is negative */
    bool bounded;   /* results lie within a few units, whatever the operands are */
    CastMotion motion;
    bool keeps_off; /* an operand 0 that is kept off zero keeps the result off zero too (sqrt) */
} AmpCard;

/* Role of an operand in a quantized graph (docs/ops.md). */
typedef enum QuantRole {
    QUANT_UNSET,
    QUANT_INPUT,  /* activation of a core op */
    QUANT_WEIGHT, /* weight, per channel of what the call gives (`weight_axis`) */
    QUANT_BIAS,
    QUANT_AGNOSTIC, /* same codes in and out */
    QUANT_TABLE,    /* unary on codes: a table of 256 */
    QUANT_GATHER,   /* embedding table: weight-like, dequantized after */
    QUANT_FLOAT,    /* stays float */
    QUANT_NEVER,    /* integers, indices, shapes */
} QuantRole;

/* A weight has one scale: no dimension of it belongs to the channels of the result. */
enum { QUANT_WHOLE = -1 };

typedef struct QuantCard {
    QuantRole in[4];  /* operand i; the last one set serves those beyond */
    QuantRole out[4]; /* result i, likewise */
    /* The dimension of an operand that is constant along which every slice may have a scale of its own, since no element
     * of the result reads two of them; or QUANT_WHOLE.  Null: always that. */
    int (*weight_axis)(const Node *n, int operand);
    OpWord integer;                /* the word that computes the call on codes; OP_input: there is none */
    bool (*serves)(const Node *n); /* which calls it serves; null: all */
    bool dequantizes; /* gives the numbers of the codes that are its operand 0, with scale and zero point */
    bool quantizes;   /* the way back */
    bool same_scale;  /* operands and result must share scale and zero point */
} QuantCard;

/* How the elements of a call's results come from those of its operands (docs/ops.md).  A word with an expansion has the
 * kind of the one part of it that is neither a row nor a move; with several such parts it is a composite. */
typedef enum AccessKind {
    ACCESS_OPAQUE,    /* nothing is said */
    ACCESS_ROW,       /* element by element, from those at its own place */
    ACCESS_FOLD,      /* from whole lines of an operand: sums, extremes, the largest k */
    ACCESS_SCAN,      /* from those before it along a line */
    ACCESS_CONTRACT,  /* sums of products of two operands; of windows too: convolutions */
    ACCESS_WINDOW,    /* from a window of an operand: pools, resizing, samples between elements */
    ACCESS_MOVE,      /* elements of operands, where shapes and attributes say */
    ACCESS_GATHER,    /* elements of an operand, where another operand says */
    ACCESS_SCATTER,   /* elements go where another operand says */
    ACCESS_DRAW,      /* random numbers */
    ACCESS_COMPOSITE, /* what the expansion says */
} AccessKind;

/* How the memory of a result and that of an operand may be one (ops/card/access.h decides it for a call). */
typedef enum AliasHow {
    ALIAS_NONE,
    ALIAS_VIEW, /* the result is the operand, read in another way: nothing is computed or moved */
    ALIAS_OVER, /* the result may be written where the operand lies */
    ALIAS_INTO, /* the operand may be made where it lies in the result */
} AliasHow;

enum { ALIAS_EACH = -1 }; /* each of the results or operands */

typedef struct Alias {
    int8_t result, operand;
    uint8_t how;
} Alias;

typedef struct Iteration Iteration;
typedef struct OwnKernels OwnKernels;

/* How a call reads its operands; of masks the last bit stands for all operands beyond. */
typedef struct AccessCard {
    AccessKind kind;
    const char *opaque; /* of an opaque word: why nothing can be said */
    bool refuses;       /* values that only a run knows may make a call fail: an index that is out of range */
    bool collides;      /* several elements of an operand may go to one place of a result */
    bool served_whole;  /* of a word with an expansion: one launch serves a call, nobody needs to open it */
    bool (*serves)(const Node *n); /* of such a word: which calls; null: all */
    bool tells; /* its code says of each block of its only result that it is done (eval_done): rows can go on there */
    uint32_t steer;     /* their values say where elements go or which there are: indices, axes, shapes, conditions */
    uint32_t type_only; /* nothing but their types is read */
    int shape;          /* the operand that is the shape of the result, counted from 1; 0: none */
    uint32_t scalar;    /* numbers of a run, one each: rates, counts of steps, scales */
    Alias alias[4]; /* those beyond what rows have anyway: over an operand that is read and typed as the result is */
    bool (*over)(const Node *n); /* calls whose results may be written over operands as `alias` says; null: all */
    /* the operand, counted from 1, that the result goes on from: where it lies, if nobody reads it any more; such a call ends whole
     * once it has begun, for half of it could not be run again; 0: none */
    int goes_on;
    /* Which elements a call reads for which, in which order; false where shapes or values that steer it are known only
     * when it runs.  Null: the rule of rows for rows, otherwise nobody knows. */
    bool (*iterate)(const Node *n, Arena *arena, Iteration *to);
    /* Kernels for a call that no walk serves (ops/card/own_kernel.h); false: it has none. */
    bool (*kernels)(const Node *n, OwnKernels *to);
} AccessCard;

/* What becomes of the elements that a call puts together: its operands', or those of one operand along its axes. */
typedef enum Combine {
    COMBINE_OTHERWISE,
    COMBINE_SUM,      /* added, or subtracted from the first */
    COMBINE_PRODUCT,  /* multiplied */
    COMBINE_QUOTIENT, /* the first is divided by the other */
} Combine;

/* What a comparison affirms of its operands, a bit each. */
enum { IS_LESS = 1, IS_EQUAL = 2, IS_GREATER = 4 };

/* What results are to a loss; of classes, they lie along the attribute `axis`. */
typedef enum Likelihood {
    LIKELIHOOD_NONE,
    LIKELIHOOD_CLASSES, /* probabilities of classes */
    LIKELIHOOD_LOGS,    /* their logarithms */
    LIKELIHOOD_YES,     /* the probability of yes, for each element */
} Likelihood;

/* Turns of a body that are known before it runs.  Parameter 0 of the body is the number of the turn and parameter 1 is true; the
 * parameters behind them are operands of the same numbers, of which the first `carried` are, from the second turn on, what the turn
 * before left: result 1 + k of the body, which is result k of the call at last.  Further results of the body are slices of the call's. */
typedef struct CountedTurns {
    int64_t turns;
    int carried;
} CountedTurns;

enum { TURN_NUMBER, TURN_GOES_ON, TURN_CARRIED }; /* parameters of such a body */

/* How values go into the regions of a call and come out of them. */
typedef struct BodyCard {
    bool open;         /* as they are: what enters and leaves may be of any one type, inside and outside */
    bool keeps_types;  /* what a region gives is read in the operator's own way, in the type that it has */
    int first_operand; /* of an open one: operand first_operand + k is parameter k of every region */
    int first_result;  /* and its result k is result first_result + k of every region */
    double (*turns)(const Node *call); /* how often a region is run, -1 if nobody can tell; null: once at most */
    bool (*counted)(const Node *call,
                    CountedTurns *to); /* whether its turns are known before it runs; null: they are not */
} BodyCard;

/* A number that a call states: an element of one of its operands. */
typedef struct StatedNumber {
    int operand;
    int64_t at;
} StatedNumber;

/* Types of operands and results whose shapes follow from each other: ops/card/signature.h says what the texts mean. */
enum { SIGNATURE_INS = 6, SIGNATURE_OUTS = 3 };
typedef struct Signature {
    const char *in[SIGNATURE_INS], *out[SIGNATURE_OUTS]; /* null: no more */
} Signature;

/* The ONNX operator a card is the newest version of. */
typedef struct OnnxName {
    const char *op;     /* null: an op of ours, domain qcc */
    int since;          /* version of the operator that the card implements */
    const char *domain; /* null: ai.onnx */
} OnnxName;

enum { PRODUCTS_BESIDE = 8 }; /* calls that OpDef.beside runs as one, at most */

typedef struct OpDef {
    const char *name;
    int min_in, max_in;   /* max_in -1: any number */
    int min_out, max_out; /* 0, 0 means exactly 1; max_out -1: any number */
    int n_regions;        /* -1: any number */
    const AttrSpec *attrs;
    const char *const *saved; /* names of results behind those that ONNX has, for the adjoint; null at the end */

    const Type *(*infer)(Infer *q);
    const Signature *signature; /* what `infer` reads, where shapes are regular; null otherwise */

    /* the meaning: exactly one of three, none for structural ops */
    const Row *row;
    Status (*eval)(Eval *e);
    Node *(*expand)(Build *b, const Site *s);
    /* several calls as one that have the same operand 0, attributes and element types, where `shares` says so of the types
     * of operand 0 and of operand 1 of any two (both null: each runs alone) */
    Status (*beside)(Eval *const *e, int n);
    bool (*shares)(const Type *left, const Type *x, const Type *y);
    bool expand_needs_values; /* the expansion depends on the values of operands that are integers */

    /* lowering opens a call with an `eval` by this, into what agrees in every bit; null, or it gives null: it stays */
    Node *(*open)(Build *b, const Site *s);

    /* an implementation of `expand` for the evaluator that agrees in every bit; may be null */
    Status (*fast)(Eval *e);

    Node *(*sample)(Build *b, Rng *rng, int variant);
    int n_variants;
    OpMode mode;

    /* What reaches the wanted operands, from what reaches the results (ops/control/reverse.h says in which form); null: the
     * expansion's adjoints serve.  The last bit of `differentiable` stands for all operands beyond. */
    void (*adjoint)(Build *b, const Site *s, Node **dx);
    bool (*adjoint_when)(const Node *n); /* which calls it serves, the expansion's adjoints serving others; null: all */
    bool open_adjoint;                   /* it holds where extents are only known when it runs */
    uint32_t differentiable;             /* operands, a bit each */
    uint32_t gives_codes; /* results of codes that stand for numbers: their gradient is that of the numbers, f32 */
    uint32_t trainable;   /* operands that are parameters by default, a bit each */

    /* of one step of an optimizer: the short names ("m", "v") of the states that it keeps of a parameter; returns how many */
    int (*states)(const void *attr, const char **names);

    int weight;                     /* cost for the measure of rules; 0 counts as 1 */
    double (*work)(const Node *n);  /* multiply-adds of a call; null: an estimate serves (ops/contract/work.h) */
    size_t (*room)(const Node *n);  /* bytes a call takes on one thread beside widened values; null: what caches hold */
    bool (*narrows)(const Node *n); /* multiplies bf16 as it lies, where engine and machine can; null: none */
    bool commutative;
    bool
        gives_operand; /* an element is one of an operand, its size or negative, or 0: of equal floats none is rounded */
    Combine combine;
    unsigned compares; /* of a comparison: IS_LESS, IS_EQUAL and IS_GREATER, as its result says */
    bool counts;       /* results are places, extents or made for them: no data */
    bool latches;      /* gives its operand as it was when the way back began */
    Likelihood likelihood;
    uint32_t statistics; /* operands that are running statistics; the results behind the first are their next values */
    uint32_t filled;     /* operands that exporters fill with one value where a module has no such parameter */
    BodyCard body;

    /* Whether the types of the operands tell the value; null: no. */
    bool (*told)(const Node *n);

    /* Finds the number that states how far dimension `axis` of operand 0 reached when that was of type `from`, in a batch of
     * `batch`.  False where no number does.  Null where no call states any. */
    bool (*extent)(const Node *n, const Type *from, int axis, int64_t batch, StatedNumber *to);
    AmpCard amp;
    QuantCard quant;
    AccessCard access;
    OnnxName onnx;
    int (*least_version)(const Node *n); /* of ONNX that means a call so, where older ones do not; 0, null: all do */
    bool structural;                     /* input, const, return ...: no meaning to evaluate */
    const char *brief;                   /* one sentence for the manual; null: the ONNX operator's */
} OpDef;

struct OpTable {
    const OpDef *const *defs;
    size_t n;
};
typedef struct OpTable OpTable;

/* The op of that word; false when there is none. */
bool op_find(const OpTable *t, Str word, Op *op);

/* The op that is the newest form of an ONNX operator; false when there is none. */
bool op_find_onnx(const OpTable *t, const char *domain, const char *op_type, Op *op);

/* Whether an operand steers a call: its values say where elements go or which there are. */
bool op_steers(const OpDef *def, int operand);

/* Whether a call reads nothing of an operand but its type. */
bool op_reads_type(const OpDef *def, int operand);

/* Whether a word only puts elements of its operands somewhere else. */
bool op_moves(const OpDef *def);

/* Whether a call reads the value of that operand, not its type alone. */
bool op_reads_value(const OpDef *def, int operand);

/* Whether the card says that the operand may be a parameter. */
bool op_trains(const OpDef *def, int operand);

/* Whether a call gives its only operand as it is: what only moves, and neither an attribute nor another operand says
 * where to. */
bool op_passes(const OpDef *def);

/* Whether a call looks up rows of operand 0, which may be a parameter, where operand 1 says. */
bool op_looks_up(const OpDef *def);

/* Whether an operand must be kept off zero, here or where it goes on to. */
bool op_guards(const OpDef *def, int operand);

/* Whether results change smoothly with the operand. */
bool op_is_smooth(const OpDef *def, int operand);

/* Whether a call with these counts fits the card. */
bool op_takes(const OpDef *def, int n_in);

#endif
