#include "api/hall/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *severity_name(Severity s)
{
    static const char *const names[] = { "error", "warning", "remark", "note" };
    return names[s];
}

static void json_text(Text *t, const char *key, const char *value)
{
    if (!value)
        return;
    text_printf(t, ",\"%s\":", key);
    text_json(t, value, strlen(value));
}

static void json_list(Text *t, const char *key, const char *const *values, size_t n)
{
    if (!n)
        return;
    text_printf(t, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        text_add(t, i ? "," : "");
        text_json(t, values[i], strlen(values[i]));
    }
    text_char(t, ']');
}

/* One object a line. */
static const char *message_json(Arena *arena, const Message *m)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "{\"severity\":\"%s\"", severity_name(m->severity));
    if (m->severity == SEVERITY_ERROR)
        text_printf(&t, ",\"exit\":%d", (int)m->status);
    json_text(&t, "topic", m->topic);
    json_text(&t, "file", m->place.file);
    json_text(&t, "place", m->place.where);
    if (m->place.byte >= 0)
        text_printf(&t, ",\"byte\":%" PRId64, m->place.byte);
    if (m->place.line)
        text_printf(&t, ",\"line\":%d,\"column\":%d", m->place.line, m->place.column);
    json_text(&t, "what", m->text);
    json_list(&t, "at", m->at, m->n_at);
    if (m->n_at_all > m->n_at)
        text_printf(&t, ",\"more\":%zu", m->n_at_all - m->n_at);
    json_list(&t, "try", m->try, m->n_try);
    text_add(&t, "}\n");
    return text_get(&t);
}

static bool wanted(const qcc_context *cx, Severity s)
{
    static const int least[] = { -1, -1, 1, 0 }; /* -q leaves warnings alone, too */
    return cx->verbosity >= least[s];
}

void report_message(void *user, const Message *m)
{
    qcc_context *cx = user;
    if (!cx->options.report || !wanted(cx, m->severity))
        return;
    const char *text;
    if (cx->as_json) {
        text = message_json(&cx->scratch, m);
    } else {
        Text t;
        text_open(&t, &cx->scratch);
        message_print(&t, m);
        text = text_get(&t);
    }
    const qcc_message out = {
        .severity = (qcc_severity)m->severity,
        .status = (qcc_status)m->status,
        .text = text,
        .file = m->place.file,
        .place = m->place.where,
        .what = m->text,
        .byte = m->place.byte,
        .line = m->place.line,
        .column = m->place.column,
        .at = (const char *const *)m->at,
        .n_at = m->n_at,
        .try_ = (const char *const *)m->try,
        .n_try = m->n_try,
        .topic = m->topic,
    };
    cx->options.report(cx->options.user, &out);
}

void report_progress(qcc_context *cx, const char *text, bool bar)
{
    const qcc_message message = { .severity = QCC_PROGRESS, .text = text, .byte = -1, .topic = bar ? "bar" : "line" };
    if (cx->options.report && cx->verbosity >= 0)
        cx->options.report(cx->options.user, &message);
}

/* Messages that need no memory. */
static void report_static(qcc_context *cx, const qcc_message *message)
{
    if (cx->options.report)
        cx->options.report(cx->options.user, message);
}

/* ---- memory that there is not ---- */

enum { NO_MEMORY_TEXT = 800, NO_MEMORY_WHAT = 500 };

static void bytes_into(char out[32], uint64_t bytes)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1000 && unit + 1 < COUNT(units); unit++)
        x /= 1000;
    snprintf(out, 32, unit ? "%.2f %s" : "%.0f %s", x, units[unit]);
}

/* Names come from files: characters that JSON would escape or a terminal would obey are replaced. */
static const char *printable(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == '"' || *p == '\\' || *p == 0x7f)
            *p = '?';
    return text;
}

/* There may be no memory left for the message either: it stands in this frame. */
void report_no_memory(qcc_context *cx)
{
    MemoryRefusal *r = &cx->memory.refusal;
    char text[NO_MEMORY_TEXT], what[NO_MEMORY_WHAT], wanted[32], used[32], budget[32], limit[128];
    bytes_into(wanted, r->wanted);
    bytes_into(used, r->used);
    bytes_into(budget, cx->memory.budget);
    snprintf(limit, sizeof limit, "of the bound %s on memory%s are", budget, cx->bounded ? " (--memory-limit)" : "");
    snprintf(what, sizeof what, "out of memory: %s wanted%s%s; %s %s in use%s", r->wanted ? wanted : "more is",
             r->work[0] ? " for " : "", printable(r->work), used, r->by_budget ? limit : "are",
             r->by_budget ? "" : ", and the system gives no more");
    const char *try = !r->by_budget ? "a smaller --batch"
                      : cx->bounded ? "--memory-limit none, or a smaller --batch"
                                    : "a smaller --batch, or a higher bound";
    if (cx->as_json)
        snprintf(text, sizeof text, "{\"severity\":\"error\",\"exit\":%d,\"what\":\"%s\",\"try\":[\"%s\"]}\n",
                 (int)INTERNAL, what, try);
    else
        snprintf(text, sizeof text, "qcc: %s\n  try: %s\n", what, try);
    const qcc_message message = {
        .severity = QCC_ERROR, .status = QCC_NO_MEMORY, .text = text, .what = what, .byte = -1, .try_ = &try, .n_try = 1
    };
    report_static(cx, &message);
}

void report_mistake(qcc_context *cx)
{
    static const qcc_message message = { .severity = QCC_ERROR,
                                         .status = QCC_INTERNAL,
                                         .text = "qcc: a mistake of qcc's own, and no memory to say which\n",
                                         .what = "a mistake of qcc's own, and no memory to say which",
                                         .byte = -1 };
    report_static(cx, &message);
}

void qcc_report_stderr(void *user, const qcc_message *message)
{
    (void)user;
    if (message->severity == QCC_ERROR || message->severity == QCC_WARNING)
        fputs(message->text, stderr);
}
