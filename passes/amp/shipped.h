/* Tables of classes that are always at hand: lists of other systems, found by name. */
#ifndef PASSES_AMP_SHIPPED_H
#define PASSES_AMP_SHIPPED_H

#include <stddef.h>

#include "base/status.h"

extern const char amp_table_mxnet_fp16[];
extern const char amp_table_mxnet_bf16[];
extern const char amp_table_pytorch_autocast[];

enum { MOST_SHIPPED_TABLES = 8 };

/* The text of "mxnet-fp16"; null: no table is called so. */
const char *amp_table_shipped(const char *name);

/* Fills an array of MOST_SHIPPED_TABLES with their names; returns their number. */
size_t amp_tables_shipped(const char **names);

#endif
