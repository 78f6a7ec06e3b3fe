/* Tables of quantizers that are always at hand: what other tools quantize unless they are told, found by name. */
#ifndef PASSES_QUANT_SHIPPED_H
#define PASSES_QUANT_SHIPPED_H

#include <stddef.h>

#include "base/status.h"

extern const char quant_table_ort[];
extern const char quant_table_trt[];
extern const char quant_table_brevitas[];
extern const char quant_table_torchao[];
extern const char quant_table_modelopt[];

enum { MOST_SHIPPED_QUANT_TABLES = 8 };

/* The text of "brevitas"; null: no table is called so. */
const char *quant_table_shipped(const char *name);

/* Fills an array of MOST_SHIPPED_QUANT_TABLES with their names; returns their number. */
size_t quant_tables_shipped(const char **names);

#endif
