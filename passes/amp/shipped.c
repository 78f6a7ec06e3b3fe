/* The tables of tables/, embedded. */
#include <string.h>

#include "passes/amp/shipped.h"

static const struct {
    const char *name, *text;
} shipped[] = {
    { "mxnet-fp16", amp_table_mxnet_fp16 },
    { "mxnet-bf16", amp_table_mxnet_bf16 },
    { "pytorch-autocast", amp_table_pytorch_autocast },
};

_Static_assert(COUNT(shipped) <= MOST_SHIPPED_TABLES, "names fit into an array of that size");

const char *amp_table_shipped(const char *name)
{
    for (size_t i = 0; i < COUNT(shipped); i++)
        if (strcmp(shipped[i].name, name) == 0)
            return shipped[i].text;
    return NULL;
}

size_t amp_tables_shipped(const char **names)
{
    for (size_t i = 0; i < COUNT(shipped); i++)
        names[i] = shipped[i].name;
    return COUNT(shipped);
}
