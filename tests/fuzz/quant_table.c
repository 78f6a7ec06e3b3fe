/* Any bytes as a table of --quant-table. */
#include "fuzz/text.h"
#include "ops/card/cards.h"
#include "passes/quant/table.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

static Status read_table(void *arg)
{
    TextFuzz *z = arg;
    const QuantTable *table;
    return quant_table_read(&table, "fuzz", z->text, &ops_table, &z->arena, &z->diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    text_fuzz(data, size, read_table);
    return 0;
}
