/* Tables of quantizers and roles as text: what --print-table quant prints and --quant-table reads.
 *
 *     # comment
 *     op:Conv[group=32]    w=int8:channel a=uint8:asym reason=depthwise
 *     /head/               w=off a=off
 *     op:Gelu              in=table out=table
 *     op:MatMul            out=off
 *     default              a=uint8
 *
 * Lines and selectors are those of passes/recipe/table_lines.h.  Operands of products (w, a, b ..) get quantizers in the words
 * of --quant; in= and out= say what an operator does with codes: what its card says, or off.  What a line does not say stays;
 * of several lines the last counts. */
#ifndef PASSES_QUANT_TABLE_H
#define PASSES_QUANT_TABLE_H

#include "passes/recipe/quantizer.h"
#include "passes/recipe/recipe.h"
#include "passes/recipe/table_lines.h"

/* What is said of an operator and codes. */
typedef enum QuantWay {
    WAY_UNSAID,
    WAY_CARD,  /* as its card says, whatever the target makes of it */
    WAY_OFF,   /* floats go in and out */
    WAY_TABLE, /* a table of codes, where its card says so */
} QuantWay;

typedef struct QuantLine {
    TableLine of; /* whom it means */
    bool says[QUANT_OPERAND_COUNT];
    Quantizer by[QUANT_OPERAND_COUNT];
    QuantWay in, out;
    const char *reason; /* null: none is given */
} QuantLine;

struct QuantTable {
    const char *file, *text;
    QuantLine *lines;
    size_t n, cap;
    bool *named; /* operators that lines name, by op */
};

/* Reads a table; USAGE at the first line that is wrong, with what to write instead. */
Status quant_table_read(const QuantTable **table, const char *file, const char *text, const OpTable *ops, Arena *arena,
                        Diag *diag);

/* Whether an operator multiplies data with weights, or data with data: quantizers are those of such products. */
bool quant_multiplies(const OpDef *def);

/* Whether an operator is a table of codes for a target, unless somebody says otherwise. */
bool quant_is_table_for(const OpDef *def, const QuantTarget *target);

/* Whether a target lets an operator that adds, multiplies or pools codes do so, unless somebody says otherwise; others
 * are no question of the target. */
bool quant_joins_for(const OpDef *def, const QuantTarget *target);

/* Appends the line of a card as it is for a target. */
void quant_table_print(Text *out, const char *title, const OpDef *def, const OpTable *ops, const QuantTarget *target);

#endif
