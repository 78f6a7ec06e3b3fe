/* Attention by blocks of queries: the scores of a block against all keys are computed at once, masked and made
 * probabilities, in the operations and the order of the expansion, so that bits are equal; more of them is never kept.
 *
 * The queries of all heads that share a head of keys are rows below each other, as they are in the expansion. */
#ifndef OPS_ATTEND_ATTENTION_BLOCKS_H
#define OPS_ATTEND_ATTENTION_BLOCKS_H

#include "ops/attend/heads.h"

enum { ATTEND_ROWS = 64 }; /* of a block; segments of a contraction are whole blocks */

/* Where element [b, head, step, 0] of an operand lies. */
typedef struct HeadStrides {
    int64_t batch, head, step;
} HeadStrides;

/* A call that is evaluated by blocks.  `mask` is of bool where `choice`, of the call's arithmetic otherwise. */
typedef struct Attend {
    Eval *e;
    const AttentionAttr *at;
    Heads h;
    DType own;
    Arithmetic arithmetic;
    size_t element;
    int64_t rows, blocks; /* of each head of keys */
    const void *q, *k, *v, *mask;
    HeadStrides of_q, of_k, of_v;
    bool choice;
    int64_t mask_strides[4], mask_keys; /* the strides are 0 where it is broadcast; keys behind these are forbidden */
    const int64_t *lengths;             /* of each batch; null: all keys count */
    bool packs;   /* every sum over keys is one segment: by packed operands (attention_packed.h) */
    bool is_bf16; /* products are of q, k and v as they lie */
} Attend;

/* Which operands of a call are what; -1 for none. */
typedef struct AttendOperands {
    int q, k, v, mask, lengths;
} AttendOperands;

/* Some rows of one head of keys. */
typedef struct AttendBlock {
    int64_t b, head, first, n; /* rows from `first` on */
    int64_t from, to;          /* keys that some row of it may see, as far as position decides */
} AttendBlock;

/* A row: its head among those of the queries, its query, and which keys position lets it see. */
typedef struct AttendRow {
    int64_t head, query, from, to;
} AttendRow;

/* What a worker needs for scores, in elements. */
typedef struct AttendRoom {
    size_t queries, scores, each, product; /* queries, scores, a number for each row, what a product works in */
} AttendRoom;

/* Reads the operands of a call. */
Attend attend_open(Eval *e, AttendOperands in);

/* Where operands and results [batch, heads, steps, size] or [batch, steps, heads * size] have their elements. */
HeadStrides attend_strides(int rank, int64_t heads, int64_t steps, int64_t size);

/* The block of that number, of all heads. */
AttendBlock attend_block(const Attend *a, int64_t number);

/* Row i of a block. */
AttendRow attend_row(const Attend *a, const AttendBlock *k, int64_t i);

/* How large the rooms of a worker are. */
AttendRoom attend_room(const Attend *a);

/* Where the mask of a row begins. */
const void *attend_mask(const Attend *a, const AttendBlock *k, const AttendRow *r);

/* Operand i as products of the call read it. */
const void *attend_operand(const Attend *a, int i);

/* Two rooms' sizes, of which the larger one is wanted. */
size_t attend_larger(size_t x, size_t y);

#define ATTEND(T)                                                                                                         \
    /* to[columns, rows] = from[rows, columns], whose rows lie `stride` apart. */                                         \
    void attend_turn_##T(T *to, const T *from, int64_t rows, int64_t columns, int64_t stride);                            \
    /* The rows of a block of an operand that lies as `at` says, one behind the other, and back. */                       \
    void attend_pack_##T(const Attend *a, const AttendBlock *k, T *to, const T *from, HeadStrides at, int64_t size);      \
    void attend_spread_##T(const Attend *a, const AttendBlock *k, T *to, const T *from, HeadStrides at, int64_t size);    \
    /* x = x op v, all n of them, by a row's loop. */                                                                     \
    void attend_with_##T(const Attend *a, int row, T *x, int64_t n, T v);                                                 \
    /* x scaled. */                                                                                                       \
    void attend_scale_##T(const Attend *a, T *x, int64_t n);                                                              \
    /* What a product inside of the call reads of x: rounded where the call is narrow. */                                 \
    void attend_narrow_##T(const Attend *a, T *x, int64_t n);                                                             \
    /* The value `v` where a row may not see a key; whether it may see any. */                                            \
    bool attend_hide_##T(const Attend *a, const AttendBlock *k, int64_t i, T *row, T v);                                  \
    /* The probabilities of a block in `s`, from queries `q` as products read them (attend_queries) and turned keys;    \
     * `capped`, unless null, gets the hyperbolic tangents of a call with a softcap. */ \
    void attend_probabilities_##T(const Attend *a, const AttendBlock *k, const T *q, const T *turned, T *s, T *capped,    \
                                  T *room);                                                                               \
    /* The queries of a block as products read them: wide ones scaled. */                                                 \
    void attend_queries_##T(const Attend *a, const AttendBlock *k, T *q);
ATTEND(f32)
ATTEND(f64)
#undef ATTEND

#endif
