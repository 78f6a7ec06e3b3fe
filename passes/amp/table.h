/* Tables of classes as text: what --print-table amp prints and --amp-table reads.
 *
 *     # comment
 *     op:Conv                      fp16=T bf16=T wide=2 reason=-
 *     op:Gelu[approximate=tanh]    fp16=F reason=precision
 *     /head/                       bf16=F
 *     default                      fp16=E
 *
 * Lines and selectors are those of passes/recipe/table_lines.h; what `default` says does not hold for operators that only
 * move data.  Values are words of classes (C: what the card's condition says), operands that stay f32, reasons.  What a
 * line does not say stays; of several lines the last counts. */
#ifndef PASSES_AMP_TABLE_H
#define PASSES_AMP_TABLE_H

#include "passes/amp/amp.h"
#include "passes/recipe/table_lines.h"

typedef struct AmpLine {
    TableLine of;       /* whom it means */
    AmpClass f16, bf16; /* AMP_UNSET: not said */
    bool says_wide, says_reason;
    uint32_t wide;
    AmpReason reason;
} AmpLine;

struct AmpTable {
    const char *file, *text;
    AmpLine *lines;
    size_t n, cap;
    bool *named; /* operators that lines name, by op */
};

/* Reads a table; USAGE at the first line that is wrong, with the nearest known word. */
Status amp_table_read(const AmpTable **table, const char *file, const char *text, const OpTable *ops, Arena *arena,
                      Diag *diag);

/* Whether a node can be what a table makes of it: nothing but tensors goes in and out, and its operator takes narrow
 * operands where it is to be narrow itself (passes/amp/fits.c). */
bool amp_class_fits(const Node *n, const AmpRole *role, DType narrow, Arena *scratch);

/* Appends the line of a card. */
void amp_table_print(Text *out, const char *title, const OpDef *def);

#endif
