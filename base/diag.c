#include "base/diag.h"

#include <inttypes.h>
#include <string.h>

enum { LONGEST_TEXT = 4000, LONGEST_NAME = 400 };

void diag_open(Diag *d, Arena *arena, void (*report)(void *user, const Message *message), void *user)
{
    *d = (Diag){ .arena = arena, .report = report, .user = user };
}

static const char *keep(Diag *d, const char *text)
{
    return text ? arena_string(d->arena, text) : NULL;
}

__attribute__((format(printf, 5, 0))) static Message *new_message(Diag *d, Severity severity, Status status,
                                                                  Place place, const char *format, va_list args)
{
    Message *m = NEW(d->arena, Message);
    *m = (Message){ .diag = d, .severity = severity, .status = status, .place = place };
    m->place.file = keep(d, place.file ? place.file : d->file);
    m->place.where = keep(d, place.where);
    m->place.source = keep(d, place.source);
    m->text = arena_vprintf(d->arena, format, args);
    return m;
}

Message *message_new(Diag *d, Severity severity, Status status, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Message *m = new_message(d, severity, status, place, format, args);
    va_end(args);
    return m;
}

void message_at(Message *m, const char *format, ...)
{
    m->n_at_all++;
    if (m->n_at == DIAG_MOST_AT)
        return;
    va_list args;
    va_start(args, format);
    GROW(m->diag->arena, m->at, m->n_at, m->cap_at);
    m->at[m->n_at++] = arena_vprintf(m->diag->arena, format, args);
    va_end(args);
}

void message_try(Message *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    GROW(m->diag->arena, m->try, m->n_try, m->cap_try);
    m->try[m->n_try++] = arena_vprintf(m->diag->arena, format, args);
    va_end(args);
}

Status message_send(Message *m)
{
    Diag *d = m->diag;
    if (m->severity == SEVERITY_WARNING && d->warnings_are_errors) {
        m->severity = SEVERITY_ERROR;
        m->status = INVALID;
    }
    if (m->severity == SEVERITY_ERROR && !d->n_errors++)
        d->first = m->status;
    d->n_warnings += m->severity == SEVERITY_WARNING;
    if (d->report)
        d->report(d->user, m);
    return m->severity == SEVERITY_ERROR ? m->status : OK;
}

Status fail(Diag *d, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Message *m = new_message(d, SEVERITY_ERROR, INVALID, place, format, args);
    va_end(args);
    return message_send(m);
}

Status fail_as(Diag *d, Status status, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Message *m = new_message(d, SEVERITY_ERROR, status, place, format, args);
    va_end(args);
    return message_send(m);
}

Status warn(Diag *d, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Message *m = new_message(d, SEVERITY_WARNING, OK, place, format, args);
    va_end(args);
    return message_send(m);
}

void remark(Diag *d, const char *topic, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Message *m = new_message(d, SEVERITY_REMARK, OK, place, format, args);
    va_end(args);
    m->topic = topic;
    (void)message_send(m);
}

static void add(Text *out, const char *text, size_t most)
{
    text_escape(out, text, strlen(text), most);
}

static void print_place(Text *out, const Place *p)
{
    if (p->file) {
        add(out, p->file, LONGEST_NAME);
        if (p->line)
            text_printf(out, p->column ? ":%d:%d" : ":%d", p->line, p->column);
        text_add(out, ": ");
    } else if (p->line) {
        text_printf(out, "line %d: ", p->line);
    }
    if (p->byte >= 0)
        text_printf(out, "byte %" PRId64 ": ", p->byte);
    if (p->where) {
        add(out, p->where, LONGEST_NAME);
        text_add(out, ": ");
    }
}

static void print_caret(Text *out, const Place *p)
{
    text_add(out, "\n    ");
    add(out, p->source, LONGEST_NAME);
    text_add(out, "\n    ");
    for (int i = 1; i < p->column && i < LONGEST_NAME; i++)
        text_char(out, ' ');
    text_char(out, '^');
}

void message_print(Text *out, const Message *m)
{
    static const char *const prefix[] = { "", "warning: ", "remark: ", "note: " };
    print_place(out, &m->place);
    text_add(out, prefix[m->severity]);
    add(out, m->text, LONGEST_TEXT);
    if (m->place.source && m->place.column > 0)
        print_caret(out, &m->place);
    for (size_t i = 0; i < m->n_at; i++) {
        text_add(out, i ? ", " : "\n  at: ");
        add(out, m->at[i], LONGEST_TEXT);
    }
    if (m->n_at_all > m->n_at)
        text_printf(out, " and %zu more", m->n_at_all - m->n_at);
    for (size_t i = 0; i < m->n_try; i++) {
        text_add(out, "\n  try: ");
        add(out, m->try[i], LONGEST_TEXT);
    }
    text_char(out, '\n');
}
