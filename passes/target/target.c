/* The rows of targets.def, found by name. */
#include "passes/target/target.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/str.h"

static const QuantTarget rows[] = {
#define TARGET(word, ...) { .name = word, __VA_ARGS__ },
#include "passes/target/targets.def"
};

const QuantTarget *quant_target(const char *name)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

size_t quant_targets(const QuantTarget **all)
{
    *all = rows;
    return COUNT(rows);
}

bool target_has(const char *list, const char *word)
{
    return str_listed(list, word) || (list && strcmp(list, "*") == 0);
}

bool target_is_usual(const QuantTarget *t)
{
    return !t->float_products && t->joins && strcmp(t->joins, "*") == 0;
}

int target_accumulator(const QuantTarget *t)
{
    enum { USUAL = 32 };
    return t->accumulator ? t->accumulator : USUAL;
}

double target_most_sum(const QuantTarget *t)
{
    return ldexp(1, target_accumulator(t) - 2);
}
