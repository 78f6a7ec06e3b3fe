/* Products with trained weights and those of their gradients: which there are, and what they are made of instead. */
#ifndef PASSES_LOWBIT_PRODUCTS_H
#define PASSES_LOWBIT_PRODUCTS_H

#include "passes/engine/pass.h"
#include "passes/lowbit/dynamic_codes.h"

/* A product with a weight, and what the way back makes of it. */
typedef struct Layer {
    Node *call[QUANT_PRODUCT_COUNT]; /* null: there is none, or nobody knows it for one */
    int data[QUANT_PRODUCT_COUNT];   /* the operand that is data going forward, gradients going back; x for weights */
    const char *why[QUANT_PRODUCT_COUNT]; /* why it stays as it is; null: it is quantized */
    Node *weight;                         /* the state */
    const QuantSpec *spec;                /* what holds for it */
    const char *by;                       /* who says so of it in particular; null: nobody */
    bool first, last;                     /* the first convolution; no such product stands behind it */
    size_t next;                          /* another layer of the same place, counted from 1 */
} Layer;

typedef struct Layers {
    Layer *list;
    size_t n, cap;
    Map places; /* of a call -> a layer there, counted from 1 */
} Layers;

/* Finds the products of a graph that was differentiated (passes/lowbit/find_products.c). */
void layers_find(Layers *to, Graph *g, Arena *scratch);

/* The value whose elements a value has, in their order: behind casts of mixed precision and what changes shapes alone. */
Node *value_behind(Node *n);

/* How a word that multiplies is made of codes.  An operand is laid out so that what is summed is one axis; its codes are
 * put back into the operand's shape. */
typedef struct ProductWay {
    int first;                      /* the operand whose scale is multiplied by first */
    int64_t (*terms)(const Node *); /* that an element of the result adds up, at most */
    int64_t (*least)(const Node *); /* the same of the smallest part that the sum may be cut into */
    Node *(*lay)(Build *b, const Node *call, int operand, Node *x, int *axis);
    Node *(*unlay)(Build *b, const Node *call, int operand, Node *x);
    /* a scale of the layout, one along the axis, in a shape that multiplies the result */
    Node *(*scale)(Build *b, const Node *call, int operand, Node *scale);
    /* the sums in f32: of codes of 8 bits, cut so that no part adds up more than `most` terms; of floats where that is 0 */
    Node *(*multiply)(Build *b, const Node *call, Node *x, Node *y, int64_t most);
    /* what the call makes of the sums: adds a bias, rounds to its type */
    Node *(*finish)(Build *b, const Node *call, Node *sums);
} ProductWay;

extern const ProductWay way_matrix, way_conv, way_conv_data, way_conv_weight;

/* The way of a call of a layer. */
const ProductWay *product_way(const Node *call);

/* ---- the pass ---- */

typedef struct Products {
    Graph *g;
    PassRun *run;
    const Quantization *recipe;
    Layers layers;
    Facts places; /* int64_t: the order of the list */
} Products;

/* Whose record an operand of a product has, and that record. */
QuantOperand layer_operand(const Layer *l, QuantProduct k, int operand);
const Quantizer *layer_record(const Layer *l, QuantProduct k, int operand);

/* How many products of two codes surely add up to an i32; 0: they are no integers, or their scales change on the way. */
int64_t product_most(const Quantizer *a, const Quantizer *b);

/* Whether a product is to be one of codes. */
bool layer_quantizes(const Layer *l, QuantProduct k);

/* Decides which products of all layers are (passes/lowbit/say_products.c). */
Status products_say(Products *p);

/* Tells the ledger of each of them. */
void products_tell(Products *p);

/* Makes the operands of those of a layer: codes in the shape of the operands, scales that multiply the result, or
 * numbers (passes/lowbit/product_codes.c). */
Status products_codes(Products *p, Layer *l, DynamicCodes of[QUANT_PRODUCT_COUNT][2]);

/* A builder of what stands before a call. */
Build product_build(const Node *call, bool back);

#endif
