/* What presets stand for. */
#include <string.h>

#include "base/number_text.h"
#include "passes/recipe/quantizer.h"

enum { FEW = 4 }; /* bits, and fewer, whose scales are worth learning */

/* Digits up to the end of a word or another letter; false where there are none, or more than an element has. */
static bool read_bits(const char **text, int *bits)
{
    int64_t v;
    const size_t n = strspn(*text, "0123456789");
    if (!n || !i64_from_text(*text, n, &v) || v < 1 || v > 16)
        return false;
    *text += n;
    *bits = (int)v;
    return true;
}

/* "w8a8": data is unsigned and has a zero point, or signed and has none; biases are integers where products are. */
static const char *weights_and_data(int w, int a, const QuantTarget *t, Arena *arena)
{
    const bool few = w <= FEW || a <= FEW;
    const char *weights = w == 1 ? "binary:channel"
                          : few  ? arena_printf(arena, "int%d:channel:narrow:lsq", w)
                                 : arena_printf(arena, "int%d:channel:narrow:minmax", w);
    const char *data = a == 1           ? "binary:mask=v"
                       : few            ? arena_printf(arena, "int%d|uint%d:tensor:lsq", a, a)
                       : t->either_data ? arena_printf(arena, "int%d|uint%d:tensor:sym:ema", a, a)
                       : t->signed_data ? arena_printf(arena, "int%d:tensor:sym:ema", a)
                                        : arena_printf(arena, "uint%d:tensor:asym:ema", a);
    return arena_printf(arena, "w=%s,a=%s,b=%s%s", weights, data, t->float_bias ? "off" : "int32",
                        few ? ",first=8,last=8" : "");
}

static const char *of_bits(const char *name, const QuantTarget *t, Arena *arena)
{
    int w, a;
    int64_t group;
    const char *at = name + 1;
    if (name[0] != 'w' || !read_bits(&at, &w))
        return NULL;
    if (!*at)
        return w == 1 ? "w=binary:channel,a=off" : arena_printf(arena, "w=int%d:channel:narrow:minmax,a=off", w);
    if (*at == 'g')
        return w > 1 && i64_from_text(at + 1, strlen(at + 1), &group) && group >= 1
                   ? arena_printf(arena, "w=int%d:group=%s:full:minmax,a=off", w, at + 1)
                   : NULL;
    at++;
    return at[-1] == 'a' && read_bits(&at, &a) && !*at ? weights_and_data(w, a, t, arena) : NULL;
}

const char *quantizer_preset(const char *name, const QuantTarget *target, Arena *arena)
{
    static const struct {
        const char *name, *text;
    } presets[] = {
#define PRESET(name, text) { name, text },
        QUANT_PRESETS(PRESET)
#undef PRESET
    };
    for (size_t i = 0; i < COUNT(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return presets[i].text;
    return of_bits(name, target, arena);
}
