#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "runtime/log/write.h"

static void add_number(Text *out, const LogValue *v)
{
    char text[NUMBER_TEXT];
    const size_t n = v->kind == LOG_F32 ? f32_to_text(text, (float)v->x) : f64_to_text(text, v->x);
    if (isfinite(v->x))
        text_bytes(out, text, n);
    else
        text_add(out, isnan(v->x) ? "\"nan\"" : v->x > 0 ? "\"inf\"" : "\"-inf\"");
}

static void add_value(Text *out, const char *name, const LogValue *v)
{
    if (v->kind == LOG_ABSENT)
        return;
    if (out->p[out->n - 1] != '{')
        text_char(out, ',');
    text_json(out, name, strlen(name));
    text_char(out, ':');
    switch (v->kind) {
    case LOG_ABSENT:
        break;
    case LOG_TEXT:
        text_json(out, v->text, strlen(v->text));
        break;
    case LOG_INT:
        text_printf(out, "%" PRId64, v->i);
        break;
    case LOG_F32:
    case LOG_F64:
        add_number(out, v);
        break;
    case LOG_FLAG:
        text_add(out, v->i ? "true" : "false");
        break;
    }
}

/* Step lines are by far the most and say what they are by having the key "loss". */
static void add_line(Text *out, const char *event, const char *const *names, const LogValue *values, size_t n,
                     const LogExtra *extra, size_t n_extra)
{
    const LogValue schema = logged_int(LOG_SCHEMA), what = logged_text(event);
    text_char(out, '{');
    if (strcmp(event, "start") == 0)
        add_value(out, "schema", &schema);
    if (strcmp(event, "step") != 0)
        add_value(out, "event", &what);
    for (size_t i = 0; i < n; i++)
        add_value(out, names[i], &values[i]);
    for (size_t i = 0; i < n_extra; i++)
        add_value(out, extra[i].name, &extra[i].value);
    text_add(out, "}\n");
}

void log_any_line(Text *out, const char *event, const LogExtra *fields, size_t n)
{
    add_line(out, event, NULL, NULL, 0, fields, n);
}

#define NAME(name) #name,
#define DEFINE(event, Struct, FIELDS)                                                                                  \
    void log_##event##_line(Text *out, const Struct *values, const LogExtra *extra, size_t n)                          \
    {                                                                                                                  \
        static const char *const names[] = { FIELDS(NAME) };                                                           \
        _Static_assert(sizeof(Struct) == COUNT(names) * sizeof(LogValue), "values and nothing else");                  \
        LogValue list[COUNT(names)];                                                                                   \
        memcpy(list, values, sizeof list);                                                                             \
        add_line(out, #event, names, list, COUNT(names), extra, n);                                                    \
    }                                                                                                                  \
                                                                                                                       \
    Status log_##event(Log *l, const Struct *values, const LogExtra *extra, size_t n)                                  \
    {                                                                                                                  \
        Text line;                                                                                                     \
        const ArenaMark mark = arena_mark(&l->arena);                                                                  \
        text_open(&line, &l->arena);                                                                                   \
        log_##event##_line(&line, values, extra, n);                                                                   \
        const Status status = log_write(l, line.p, line.n);                                                            \
        arena_reset(&l->arena, mark);                                                                                  \
        return status;                                                                                                 \
    }

LOG_EVENTS(DEFINE)
