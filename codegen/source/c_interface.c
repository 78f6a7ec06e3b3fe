/* The interface of a source, and the functions that make it up. */
#include <inttypes.h>
#include <string.h>

#include "codegen/source/c_parts.h"

static const char *port_type(const CPort *p)
{
    return c_type(c_kept(p->value->type));
}

/* Whether a parameter is sums where the model has numbers. */
static bool is_sums(const CPort *p)
{
    return p->floats && c_kept(p->value->type) == I32;
}

static int64_t port_bytes(const CPort *p)
{
    return type_elements(p->value->type) * dtype_bits(c_kept(p->value->type)) / 8;
}

static int64_t round_up(int64_t n)
{
    return (n + 3) / 4 * 4;
}

/* What the functions on floats take, too. */
static int64_t float_bytes(const CSource *s)
{
    int64_t n = s->arena_bytes;
    for (size_t i = 0; i < s->n_inputs; i++)
        n += s->inputs[i].floats ? round_up(port_bytes(&s->inputs[i])) : 0;
    for (size_t i = 0; i < s->n_outputs; i++)
        n += s->outputs[i].floats ? round_up(port_bytes(&s->outputs[i])) : 0;
    return n;
}

bool c_has_floats(const CSource *s)
{
    return float_bytes(s) > s->arena_bytes;
}

static void print_parameters(Text *t, const CSource *s, const char *function, bool floats)
{
    text_printf(t, "int %s_%s(", s->name, function);
    for (size_t i = 0; i < s->n_inputs; i++)
        text_printf(t, "const %s *%s, ", floats && s->inputs[i].floats ? "float" : port_type(&s->inputs[i]),
                    s->inputs[i].name);
    for (size_t i = 0; i < s->n_outputs; i++)
        text_printf(t, "%s *%s, ", floats && s->outputs[i].floats ? "float" : port_type(&s->outputs[i]),
                    s->outputs[i].name);
    text_add(t, "void *arena)");
}

/* A float as C reads it back. */
static const char *float_text(CSource *s, f32 v)
{
    const char *text = arena_printf(s->arena, "%.9g", (double)v);
    return arena_printf(s->arena, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

/* The scales of sums: as floats, and as integers for who compares sums without any. */
static void print_scales(Text *t, CSource *s, const CPort *p)
{
    f32 most = 0;
    for (int i = 0; i < p->n_scales; i++)
        most = p->scales[i] > most ? p->scales[i] : most;
    text_printf(t, "/* Of element i they have number i %% %d; ratios are the same by the largest, times 2^15. */\n",
                p->n_scales);
    text_printf(t, "#define %s_SCALES \\\n    { ", p->big);
    for (int i = 0; i < p->n_scales; i++)
        text_printf(t, "%s%s", i == 0 ? "" : i % 6 ? ", " : ", \\\n      ", float_text(s, p->scales[i]));
    text_printf(t, " }\n#define %s_RATIOS \\\n    { ", p->big);
    for (int i = 0; i < p->n_scales; i++)
        text_printf(t, "%s%.0f",
                    i == 0   ? ""
                    : i % 12 ? ", "
                             : ", \\\n      ",
                    most > 0 ? (double)p->scales[i] / (double)most * 32768 : 0);
    text_add(t, " }\n");
}

static void print_port(Text *t, CSource *s, const CPort *p)
{
    text_printf(t, "\n/* %s: %s of %s, row by row%s */\n", c_comment(s, p->said), port_type(p),
                c_shape(s, p->value->type),
                !p->floats   ? "."
                : is_sums(p) ? "; a sum stands for the number sum * scale."
                             : "; a code stands for the number (code - zero) * scale.");
    text_printf(t, "#define %s_LENGTH %" PRId64 "\n", p->big, type_elements(p->value->type));
    if (p->n_scales == 1)
        text_printf(t, "#define %s_SCALE %s\n", p->big, float_text(s, p->scales[0]));
    if (p->n_scales == 1 && !is_sums(p))
        text_printf(t, "#define %s_ZERO %" PRId64 "\n", p->big, p->zero);
    if (p->n_scales > 1)
        print_scales(t, s, p);
}

void c_print_interface(Text *t, CSource *s)
{
    text_printf(t, "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n", s->big, s->big);
    for (size_t i = 0; i < s->n_inputs; i++)
        print_port(t, s, &s->inputs[i]);
    for (size_t i = 0; i < s->n_outputs; i++)
        print_port(t, s, &s->outputs[i]);
    text_printf(
        t, "\n/* Bytes of the arena, aligned for int32_t, that a run works in; nothing in it outlives the run. */\n");
    text_printf(t, "#define %s_ARENA_BYTES %" PRId64 "\n", s->big, s->arena_bytes ? s->arena_bytes : 4);
    if (c_has_floats(s))
        text_printf(t, "#define %s_FLOAT_ARENA_BYTES %" PRId64 "\n", s->big, float_bytes(s));
    text_add(t, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text_add(t, "/* From codes to codes, without floats.  Returns 0, or 1 where a pointer is null. */\n");
    print_parameters(t, s, "run_codes", false);
    text_add(t, ";\n");
    if (c_has_floats(s)) {
        text_printf(
            t, "\n#ifndef %s_NO_FLOAT\n/* The same from numbers to numbers, in an arena of %s_FLOAT_ARENA_BYTES. */\n",
            s->big, s->big);
        print_parameters(t, s, "run", true);
        text_add(t, ";\n#endif\n");
    }
    text_printf(t, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- the run ---- */

static void print_null_check(Text *t, const CSource *s)
{
    text_add(t, "    if (");
    for (size_t i = 0; i < s->n_inputs; i++)
        text_printf(t, "!%s || ", s->inputs[i].name);
    for (size_t i = 0; i < s->n_outputs; i++)
        text_printf(t, "!%s || ", s->outputs[i].name);
    text_add(t, "!arena) {\n        return 1;\n    }\n");
}

void c_print_run(Text *t, CSource *s)
{
    text_add(t, "\n");
    print_parameters(t, s, "run_codes", false);
    text_add(t, "\n{\n");
    if (s->arena_bytes)
        text_add(t, "    uint8_t *const room = arena;\n");
    print_null_check(t, s);
    for (size_t i = 0; i < s->n_calls; i++) {
        const CCall *call = &s->calls[i];
        text_printf(t, "    %s(", call->function);
        for (int k = 0; k < call->n; k++)
            text_printf(t, "%s%s", k ? ", " : "", c_place(s, call->args[k]));
        text_add(t, ");\n");
    }
    text_add(t, "    return 0;\n}\n");
}

static void print_quantizers(Text *t, const CSource *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        const CPort *p = &s->inputs[i];
        if (!p->floats)
            continue;
        double least, most;
        const QuantizeAttr *at = p->value->attr;
        code_limits(p->value->type->dtype, at->least, at->largest, &least, &most);
        text_printf(t, "    for (int i = 0; i < %s_LENGTH; i++) {\n", p->big);
        text_printf(t, "        %s_codes[i] = (%s)quantize(%s[i], %s_SCALE, %s_ZERO, %.0f, %.0f);\n    }\n", p->name,
                    port_type(p), p->name, p->big, p->big, least, most);
    }
}

static void print_numbers(Text *t, const CSource *s)
{
    for (size_t i = 0; i < s->n_outputs; i++) {
        const CPort *p = &s->outputs[i];
        if (!p->floats)
            continue;
        text_printf(t, "    for (int i = 0; i < %s_LENGTH; i++) {\n        %s[i] = ", p->big, p->name);
        if (!is_sums(p))
            text_printf(t, "(float)(%s_codes[i] - %s_ZERO) * %s_SCALE;\n    }\n", p->name, p->big, p->big);
        else if (p->n_scales == 1)
            text_printf(t, "(float)%s_codes[i] * %s_SCALE;\n    }\n", p->name, p->big);
        else
            text_printf(t, "(float)%s_codes[i] * %s_scales[i %% %d];\n    }\n", p->name, p->name, p->n_scales);
    }
}

/* Where codes of parameters lie: behind what the run on codes takes. */
static void print_codes(Text *t, const CPort *p, int64_t *at)
{
    if (!p->floats)
        return;
    text_printf(t, "    %s *const %s_codes = (%s *)(void *)((uint8_t *)arena + %" PRId64 ");\n", port_type(p), p->name,
                port_type(p), *at);
    *at += round_up(port_bytes(p));
}

void c_print_float_run(Text *t, CSource *s)
{
    int64_t at = s->arena_bytes;
    text_printf(t, "\n#ifndef %s_NO_FLOAT\n", s->big);
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].floats) {
            c_print_float_runtime(t);
            text_add(t, "\n");
            break;
        }
    print_parameters(t, s, "run", true);
    text_add(t, "\n{\n");
    for (size_t i = 0; i < s->n_outputs; i++)
        if (s->outputs[i].n_scales > 1)
            text_printf(t, "    static const float %s_scales[] = %s_SCALES;\n", s->outputs[i].name, s->outputs[i].big);
    for (size_t i = 0; i < s->n_inputs; i++)
        print_codes(t, &s->inputs[i], &at);
    for (size_t i = 0; i < s->n_outputs; i++)
        print_codes(t, &s->outputs[i], &at);
    print_null_check(t, s);
    print_quantizers(t, s);
    text_printf(t, "    %s_run_codes(", s->name);
    for (size_t i = 0; i < s->n_inputs; i++)
        text_printf(t, "%s%s, ", s->inputs[i].name, s->inputs[i].floats ? "_codes" : "");
    for (size_t i = 0; i < s->n_outputs; i++)
        text_printf(t, "%s%s, ", s->outputs[i].name, s->outputs[i].floats ? "_codes" : "");
    text_add(t, "arena);\n");
    print_numbers(t, s);
    text_add(t, "    return 0;\n}\n#endif\n");
}
