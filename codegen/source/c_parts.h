/* Parts of the printer of C. */
#ifndef CODEGEN_SOURCE_C_PARTS_H
#define CODEGEN_SOURCE_C_PARTS_H

#include "base/heap.h"
#include "codegen/source/c_source.h"
#include "ops/card/eval.h"
#include "ops/quant/words.h"

/* What is known of a value. */
typedef struct CValue {
    const Tensor *constant; /* it is this */
    const char *name;       /* of a parameter of the run; null: it lies in the arena */
    const Node *at;         /* whose elements it has, in their order; null: it has none yet */
    int64_t bytes, offset;  /* in the arena */
    int first, last;        /* calls that it is needed from, and up to */
} CValue;

/* A call of the run: its operands and its result. */
typedef struct CCall {
    const char *function;
    int n;
    const Node *args[4];
} CCall;

/* A parameter of the run. */
typedef struct CPort {
    const Node *value;      /* codes, or sums */
    const char *name, *big; /* as C writes it, and in the names of macros */
    const char *said;       /* as the model calls it */
    bool floats;            /* the model has numbers there: of codes or sums times scales */
    int n_scales;
    const f32 *scales; /* one, or one for each element of a row */
    int64_t zero;
} CPort;

typedef struct CSource {
    Graph *g;
    Arena *arena;
    Heap heap;
    const CSourceOptions *options;
    Facts values; /* CValue */
    Map names;    /* that are taken */
    Text code;    /* tables and functions */
    int depth;    /* of the line that is printed next */
    CCall *calls;
    size_t n_calls, cap_calls;
    CPort *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const char *name, *big;
    int64_t table_bytes, arena_bytes;
} CSource;

/* ---- c_source.c ---- */

/* What sums are multiplied by where they become a value's numbers, one or one a column, and the sums; null: it is computed
 * of none. */
const f32 *c_sum_scales(CSource *s, const Node *n, const Node **sums, int *count);

/* ---- c_values.c ---- */

CValue *c_value(CSource *s, const Node *n);

/* The constant behind an operand; null: it is none. */
const Tensor *c_constant(CSource *s, const Node *n);

/* Finds the constants of the graph. */
Status c_find_constants(CSource *s);

/* Makes what a word gives for constant operands. */
Status c_evaluate(CSource *s, const Node *n, const Tensor *const *ins, const Tensor **result);

/* A name that nobody has yet, made of a text: of a function or a table, which is the name of no function of C, or of a
 * parameter. */
const char *c_name(CSource *s, const char *text);
const char *c_parameter_name(CSource *s, const char *text);

/* The text of a value's name, without what says that it is codes. */
const char *c_text_of(CSource *s, const Node *n);

/* "uint8_t"; null: not a type that values here have. */
const char *c_type(DType dtype);

/* Who gives the same elements in the same order. */
const Node *c_behind_shapes(const Node *n);

/* What values of a type are here: those that the model has as floats are sums. */
static inline DType c_kept(const Type *t)
{
    return t->dtype == F32 ? I32 : t->dtype;
}

/* Notes a call; the last of the arguments is what it makes. */
void c_call(CSource *s, const char *function, int n, const Node *const *args);

/* A value that has the elements of another. */
void c_same(CSource *s, const Node *n, const Node *as);

/* Where values lie. */
void c_plan(CSource *s);

/* How the run says where a value is. */
const char *c_place(CSource *s, const Node *n);

/* ---- c_text.c ---- */

/* A line at the depth of the moment. */
void c_line(CSource *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens a loop over an index; one of a single pass is none.  Closes the last k lines that opened something. */
void c_loop(CSource *s, const char *index, int64_t n);
void c_open(CSource *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void c_close_to(CSource *s, int depth);

/* What indices of the result are called, and the index of an operand for them, as numpy broadcasts. */
extern const char *const c_places[];
const char *c_broadcast(CSource *s, const Type *x, const Type *y, const char *const *indices);

/* An index into an array of these extents: "(c * 16 + i) * 16 + j". */
typedef struct CAxis {
    const char *index;
    int64_t extent;
} CAxis;
const char *c_index(CSource *s, int n, const CAxis *axes);

/* A constant table of integers; its type is the smallest that holds them. */
void c_table(CSource *s, const char *name, const char *type, int64_t n, const int64_t *v);
const char *c_smallest(int64_t n, const int64_t *v);

/* A table of weights; packed: two to a byte, where each fits into half of one. */
typedef struct CWeights {
    const char *name;
    bool packed;
} CWeights;
CWeights c_weights(CSource *s, const char *name, int64_t n, const int64_t *v);

/* The weight at an index. */
const char *c_weight(CSource *s, const CWeights *w, const char *index);

/* Opens the function of a call, after a remark about it: name(const T *x, .., T *y). */
void c_function(CSource *s, const char *name, const Node *n, int n_in, const Node *const *ins, const char *remark);

/* A name of the model as it may stand in a comment. */
const char *c_comment(CSource *s, const char *name);

/* A shape without the batch of one: "16 x 8 x 8". */
const char *c_shape(CSource *s, const Type *t);

/* "x", or "(x - 3)". */
const char *c_centred(CSource *s, const char *x, int64_t zero);

/* What is computed, clamped to the range of codes; the line that stores that. */
const char *c_code(CSource *s, const char *value, const CodeRange *range, DType dtype);
void c_store(CSource *s, const char *index, const char *value, const CodeRange *range, DType dtype);

/* ---- c_products.c ---- */

/* Numbers of a function at an index: a table of its own, or the one number that all of them are. */
const char *c_numbers(CSource *s, const char *function, const char *what, int64_t n, const int64_t *v,
                      const char *index);

/* A product of codes, whichever word it is. */
typedef struct CProduct {
    const Node *n;                              /* the call whose function it is */
    const Node *x, *x_zero, *w, *w_zero, *bias; /* no zero point: 0 */
    const Type *y;
    const void *user;
    /* Says what is stored of `sum`, after tables of its own; there is an index for each axis of the result. */
    Status (*finish)(CSource *s, const struct CProduct *p, const char *name, const char *const *indices,
                     int64_t channels, const char **made);
} CProduct;
Status c_print_convolved(CSource *s, const CProduct *p, const ConvAttr *at);
Status c_print_multiplied(CSource *s, const CProduct *p, bool ta, bool tb);

/* ---- c_windows.c ---- */

/* What indices of a window of three dimensions are called: places of the result, taps, places of the data. */
extern const char *const c_outer[], *const c_taps[], *const c_inner[];

/* Whether some window sees places outside of the data. */
bool c_leaves_data(const Window *w, int d);

/* Opens the loops over the taps of a window that meet data. */
void c_open_taps(CSource *s, const Window *w);

/* ---- numbers ---- */

/* v = m / 2^shift exactly, m of 24 bits and a sign. */
typedef struct CFixed {
    int64_t m;
    int shift;
} CFixed;
CFixed c_fixed(f32 v);

/* Whether it can be what sums are multiplied by; then its shift is one that the source can make. */
bool c_is_factor(CFixed *f);

/* What the numbers of a constant are, in the arena. */
const int64_t *c_integers(CSource *s, const Tensor *t);
const f32 *c_floats(CSource *s, const Tensor *t);
f32 c_float(CSource *s, const Node *n);
int64_t c_integer(CSource *s, const Node *n);

/* Reports that a call cannot be C: UNSUPPORTED. */
Status c_refuse(const Node *n, const char *why, const char *way) __attribute__((warn_unused_result));

/* ---- c_interface.c ---- */

/* Whether a parameter is codes where the model has numbers. */
bool c_has_floats(const CSource *s);

/* Sizes, scales and prototypes; the run on codes; the run on numbers, which quantizes and calls that. */
void c_print_interface(Text *t, CSource *s);
void c_print_run(Text *t, CSource *s);
void c_print_float_run(Text *t, CSource *s);

/* ---- words ---- */

Status c_print_conv(CSource *s, const Node *n);
Status c_print_matmul(CSource *s, const Node *n);
Status c_print_add(CSource *s, const Node *n);
Status c_print_mul(CSource *s, const Node *n);
Status c_print_max_pool(CSource *s, const Node *n);
Status c_print_average_pool(CSource *s, const Node *n);
Status c_print_global_average_pool(CSource *s, const Node *n);
Status c_print_concat(CSource *s, const Node *n);

/* Whether integers are computed element by element, and nobody but such a computation reads them; those at its end. */
bool c_is_step(CSource *s, const Node *n);
bool c_ends_steps(CSource *s, const Node *n);
Status c_print_steps(CSource *s, const Node *n);
Status c_print_move(CSource *s, const Node *n);

/* Codes of numbers that are functions of one code: a table. */
Status c_print_quantize(CSource *s, const Node *n);

/* What a quantizer makes of the number of every code that a dequantizer reads. */
Status c_requantized(CSource *s, const Node *quantizer, const Node *dequantizer, int64_t *table);

/* Whether a word picks among its operand's elements: a frame around them, an extreme along axes. */
bool c_picks(const Node *n);

/* Such a call of codes; `result` is the call, or what quantizes what it picks among numbers of codes. */
Status c_print_pick(CSource *s, const Node *result, const Node *call);

/* Whether shares are of numbers of codes, and the codes of such shares. */
bool c_is_softmax(const Node *n);
Status c_print_softmax(CSource *s, const Node *quantizer);

/* Where the largest or the least is: of codes, of their numbers, of sums. */
Status c_print_arg(CSource *s, const Node *n);

/* The functions that some code calls, and those on floats. */
void c_print_runtime(Text *out, const char *code);
void c_print_float_runtime(Text *out);

#endif
