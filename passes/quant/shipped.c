/* The tables of tables/quant/, embedded. */
#include "passes/quant/shipped.h"

#include <string.h>

static const struct {
    const char *name, *text;
} shipped[] = {
    { "ort", quant_table_ort },         { "trt", quant_table_trt },           { "brevitas", quant_table_brevitas },
    { "torchao", quant_table_torchao }, { "modelopt", quant_table_modelopt },
};

_Static_assert(COUNT(shipped) <= MOST_SHIPPED_QUANT_TABLES, "names fit into an array of that size");

const char *quant_table_shipped(const char *name)
{
    for (size_t i = 0; i < COUNT(shipped); i++)
        if (strcmp(shipped[i].name, name) == 0)
            return shipped[i].text;
    return NULL;
}

size_t quant_tables_shipped(const char **names)
{
    for (size_t i = 0; i < COUNT(shipped); i++)
        names[i] = shipped[i].name;
    return COUNT(shipped);
}
