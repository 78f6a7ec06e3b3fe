/* What changed in the operators, version by version: one row a change.
 *
 * A call enters at the version its model imports and leaves at the newest; between, every row of its operator that is
 * newer than the call is applied, oldest first.  Changes that only admitted more types have no row. */
#include "frontends/onnx/call.h"

#include <string.h>

static const Upgrade rows[] = {
    { "Flatten", 1, NULL, "first version" },
};

const Upgrade *upgrades(size_t *n)
{
    *n = COUNT(rows);
    return rows;
}

Status upgrade(Call *c)
{
    if (c->domain[0])
        return OK;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (strcmp(rows[i].op, c->op) != 0 || rows[i].version <= c->version || !rows[i].apply)
            continue;
        TRY(rows[i].apply(c));
        if (c->result)
            return OK;
    }
    return OK;
}
