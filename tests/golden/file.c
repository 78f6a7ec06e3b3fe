#include "golden/file.h"

#include <string.h>

static const char mark[] = "# error: ";

static Str next_line(Str *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    const Str line = { rest->p, end ? (size_t)(end - rest->p) : rest->n };
    const size_t step = line.n + (end != NULL);
    *rest = (Str){ rest->p + step, rest->n - step };
    return line;
}

static bool starts(Str s, const char *with)
{
    return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

static Str behind(Str s, const char *with)
{
    return (Str){ s.p + strlen(with), s.n - strlen(with) };
}

static Str trimmed(Str s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\r'))
        s.n--;
    return s;
}

/* Several errors of one line are written behind each other. */
static void read_errors(Golden *g, Arena *arena, Str line, int number)
{
    const char *at = memmem(line.p, line.n, mark, sizeof mark - 1);
    while (at) {
        const char *from = at + sizeof mark - 1, *end = line.p + line.n;
        at = memmem(from, (size_t)(end - from), mark, sizeof mark - 1);
        GROW(arena, g->errors, g->n_errors, g->cap_errors);
        g->errors[g->n_errors++] =
            (Expected){ number, trimmed((Str){ from, (size_t)((at ? at : end) - from) }), false };
    }
}

static void read_head(Golden *g, Str line)
{
    if (starts(line, "# run: ")) {
        g->run = behind(line, "# run: ");
        const char *error = memmem(g->run.p, g->run.n, mark, sizeof mark - 1);
        if (error)
            g->run.n = (size_t)(error - g->run.p);
    }
    g->rounds |= starts(line, "# rounds");
    g->narrow |= starts(line, "# narrow");
    g->no_values |= starts(line, "# no-values");
}

void golden_read(Golden *g, Arena *arena, const char *path, Str text)
{
    Str rest = text;
    bool head = true;
    *g = (Golden){ .path = path, .text = text, .input = text, .body = text, .run = str("print") };
    while (rest.n) {
        const Str line = next_line(&rest);
        if (str_is(trimmed(line), "==>")) {
            g->has_output = true;
            g->output = rest;
            g->input.n = (size_t)(line.p - text.p);
            break;
        }
        g->lines++;
        head = head && starts(line, "#");
        if (head) {
            read_head(g, line);
            g->body = rest;
        }
        read_errors(g, arena, line, g->lines);
    }
    g->body.n = (size_t)(g->input.p + g->input.n - g->body.p);
}

const char *golden_message(Arena *arena, const Message *m)
{
    const char *text = m->text;
    for (size_t i = 0; i < m->n_try; i++)
        text = arena_printf(arena, "%s | try: %s", text, m->try[i]);
    return text;
}

/* What has no line is expected on the first; what is behind the end, on the last. */
static int line_of(const Golden *g, const Message *m)
{
    return m->place.line > g->lines ? g->lines : m->place.line ? m->place.line : 1;
}

bool golden_meet(Golden *g, Arena *arena, const Message *m)
{
    const char *text = golden_message(arena, m);
    for (size_t i = 0; i < g->n_errors; i++) {
        Expected *e = &g->errors[i];
        if (!e->met && e->line == line_of(g, m) && memmem(text, strlen(text), e->text.p, e->text.n)) {
            e->met = true;
            return true;
        }
    }
    return false;
}

bool golden_takes_any(const Golden *g, const Message *m)
{
    for (size_t i = 0; i < g->n_errors; i++)
        if (g->errors[i].line == line_of(g, m) && str_is(g->errors[i].text, "..."))
            return true;
    return false;
}

static void add_errors(const Golden *g, Text *out, int line, const Message *const *errors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (errors[i]->severity != SEVERITY_ERROR || line_of(g, errors[i]) != line)
            continue;
        text_add(out, out->n && out->p[out->n - 1] != '\n' ? "    " : "");
        text_add(out, mark);
        text_add(out, golden_message(out->arena, errors[i]));
    }
}

Str golden_rewritten(const Golden *g, Arena *arena, const Message *const *errors, size_t n, const char *output)
{
    Text out;
    Str rest = g->input;
    int number = 0;
    text_open(&out, arena);
    while (rest.n) {
        Str line = next_line(&rest);
        const char *old = memmem(line.p, line.n, mark, sizeof mark - 1);
        if (old)
            line = trimmed((Str){ line.p, (size_t)(old - line.p) });
        text_bytes(&out, line.p, line.n);
        add_errors(g, &out, ++number, errors, n);
        text_char(&out, '\n');
    }
    if (output) {
        text_add(&out, "==>\n");
        text_add(&out, output);
    }
    return (Str){ text_get(&out), out.n };
}
