#include "api/words.h"

#include <inttypes.h>
#include <string.h>

#include "ops/cards.h"

static const char *scaled(Arena *arena, uint64_t n, const char *const *units)
{
    double x = (double)n;
    int u = 0;
    while (x >= 999.95 && u < 4) {
        x /= 1000;
        u++;
    }
    return u ? arena_printf(arena, "%.1f %s", x, units[u]) : arena_printf(arena, "%" PRIu64 "%s", n, units[0]);
}

const char *bytes_text(Arena *arena, uint64_t bytes)
{
    static const char *const units[] = { " bytes", "kB", "MB", "GB", "TB" };
    return scaled(arena, bytes, units);
}

const char *count_text(Arena *arena, uint64_t n)
{
    static const char *const units[] = { "", "k", "M", "G", "T" };
    return scaled(arena, n, units);
}

const char *name_text(Arena *arena, const char *name)
{
    enum { LONGEST = 200 };
    Text t;
    text_open(&t, arena);
    text_escape(&t, name, strlen(name), LONGEST);
    return text_get(&t);
}

static const char *with_domain(Arena *arena, const char *domain, const char *op)
{
    return domain && *domain ? arena_printf(arena, "%s.%s", domain, op) : op;
}

const char *op_title(Arena *arena, const Node *n)
{
    const OpDef *def = op_of(n);
    if (n->op == OP_opaque) {
        const OpaqueAttr *a = n->attr;
        return with_domain(arena, a->domain, a->op_type);
    }
    return def->onnx.op ? with_domain(arena, def->onnx.domain, def->onnx.op) : def->name;
}
