/* Tables of numbers as text: fields between commas, quoted where they want to be, lines ended either way.  The whole
 * file is parsed when it is opened, so what is wrong has a line and a column. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/number_text.h"
#include "runtime/data/formats.h"

enum { CSV_BLOCK = 65536, CSV_FIELD = 4096, CSV_MOST_COLUMNS = 1 << 20, CSV_END = -1, CSV_BROKEN = -2 };

typedef struct Csv {
    Opening *o;
    uint8_t *block;
    size_t n, i;                /* of the block */
    uint64_t at;                /* where the next one begins */
    int line, column;           /* of the next byte */
    int from_line, from_column; /* of the field */
    char *field;
    size_t length;
    bool quoted, broken; /* reading failed, and was said */

    const char **first; /* the fields of the first record: names, or data */
    size_t n_columns, cap_columns;
    int *slot; /* for each column of the file: its place in a sample; -1: not wanted */
    size_t n_slots;

    void *values; /* i64, or f64 from the first number that is not whole */
    size_t n_values, cap_values;
    bool whole;
} Csv;

static Place place_here(const Csv *c)
{
    return (Place){ .file = c->o->s->path, .line = c->from_line, .column = c->from_column, .byte = -1 };
}

/* ---- bytes ---- */

static int peek(Csv *c)
{
    const Bytes *file = &c->o->s->file;
    if (c->i < c->n)
        return c->block[c->i];
    const uint64_t left = file->size - c->at;
    const size_t n = left < CSV_BLOCK ? (size_t)left : CSV_BLOCK;
    if (c->broken)
        return CSV_BROKEN;
    if (!n)
        return CSV_END;
    if (bytes_get(file, c->o->d, c->at, c->block, n) != OK) {
        c->broken = true;
        return CSV_BROKEN;
    }
    c->at += n;
    c->n = n;
    c->i = 0;
    return c->block[0];
}

static void step(Csv *c)
{
    const uint8_t b = c->block[c->i++];
    c->column++;
    if (b == '\n') {
        c->line++;
        c->column = 1;
    }
}

/* ---- fields ---- */

static Status add(Csv *c, int b)
{
    if (c->length + 1 == CSV_FIELD)
        return fail(c->o->d, place_here(c), "a field is longer than %d bytes", CSV_FIELD);
    c->field[c->length++] = (char)b;
    c->field[c->length] = 0;
    return OK;
}

/* After the opening quote, up to behind the closing one. */
static Status read_quoted(Csv *c)
{
    for (int b; (b = peek(c)) != CSV_BROKEN; step(c)) {
        if (b == CSV_END)
            return fail(c->o->d, place_here(c), "a quote is opened and never closed");
        if (b == '"') {
            step(c);
            if (peek(c) != '"')
                return OK;
        }
        TRY(add(c, b));
    }
    return IO;
}

/* One field and what ends it; *last: a line or the file. */
static Status read_field(Csv *c, bool *last)
{
    c->from_line = c->line;
    c->from_column = c->column;
    c->length = 0;
    c->field[0] = 0;
    c->quoted = peek(c) == '"';
    if (c->quoted) {
        step(c);
        TRY(read_quoted(c));
    }
    for (int b; (b = peek(c)) != CSV_BROKEN;) {
        *last = b == '\n' || b == CSV_END;
        if (b != CSV_END)
            step(c);
        if (*last || b == ',')
            return OK;
        if (b == '\r' && (peek(c) == '\n' || peek(c) == CSV_END))
            continue;
        if (c->quoted)
            return fail(c->o->d, place_here(c), "text follows a closing quote");
        TRY(add(c, b));
    }
    return IO;
}

static bool at_blank_line(Csv *c)
{
    const int b = peek(c);
    return b == '\n' || b == '\r';
}

static Str trimmed(const Csv *c)
{
    Str s = { c->field, c->length };
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (Str){ s.p + 1, s.n - 1 };
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is_number(Str s)
{
    double x;
    return f64_from_text(s.p, s.n, &x);
}

/* ---- values ---- */

static void make_fractional(Csv *c)
{
    int64_t *from = c->values;
    double *to = c->values;
    for (size_t i = 0; i < c->n_values; i++) {
        const double x = (double)from[i];
        memcpy(&to[i], &x, sizeof x);
    }
    c->whole = false;
}

static Status make_room(Csv *c)
{
    if (c->n_values < c->cap_values)
        return OK;
    const size_t cap = c->cap_values ? c->cap_values * 2 : 8192;
    void *larger = opening_hold(c->o, cap * sizeof(int64_t));
    if (!larger)
        return INVALID;
    if (c->n_values)
        memcpy(larger, c->values, c->n_values * sizeof(int64_t));
    heap_free(&c->o->s->heap, c->values);
    *c->o->q->held -= c->cap_values * sizeof(int64_t);
    c->values = larger;
    c->cap_values = cap;
    return OK;
}

static const char *column_name(const Csv *c, size_t column)
{
    return c->first[column] ? c->first[column] : arena_printf(c->o->d->arena, "%zu", column);
}

/* `at` is where its place in a sample is, counted from the start of the record. */
static Status put_value(Csv *c, Str s, size_t column, size_t at)
{
    int64_t i;
    double x;
    const bool is_whole = i64_from_text(s.p, s.n, &i);
    if (!is_whole && !f64_from_text(s.p, s.n, &x))
        return s.n ? fail(c->o->d, place_here(c), "'%.*s' in column %s is no number", STR_ARG(s),
                          column_name(c, column))
                   : fail(c->o->d, place_here(c), "column %s is empty", column_name(c, column));
    if (!is_whole && c->whole)
        make_fractional(c);
    if (c->whole) {
        memcpy((int64_t *)c->values + at, &i, sizeof i);
    } else {
        x = is_whole ? (double)i : x;
        memcpy((double *)c->values + at, &x, sizeof x);
    }
    return OK;
}

/* ---- columns ---- */

static int find_column(const Csv *c, Str name)
{
    int64_t n;
    for (size_t i = 0; i < c->n_columns; i++)
        if (c->first[i] && str_is(name, c->first[i]))
            return (int)i;
    return i64_from_text(name.p, name.n, &n) && n >= 0 && (size_t)n < c->n_columns ? (int)n : -1;
}

static Status no_column(const Csv *c, Str name)
{
    Opening *o = c->o;
    const char *word = arena_copy(o->d->arena, name.p, name.n), *known[64];
    size_t n = 0;
    for (size_t i = 0; i < c->n_columns && n < COUNT(known); i++)
        if (c->first[i])
            known[n++] = c->first[i];
    const char *near = str_nearest(word, known, n);
    Message *m = message_new(o->d, SEVERITY_ERROR, USAGE, o->place, "has no column '%s': it has %zu columns, from 0",
                             word, c->n_columns);
    for (size_t i = 0; i < n; i++)
        message_at(m, "%s", known[i]);
    if (near)
        message_try(m, "column=%s", near);
    return message_send(m);
}

static Status want_columns(Csv *c, int from, int to)
{
    for (int i = from; i <= to; i++) {
        if (c->slot[i] >= 0)
            return fail_as(c->o->d, USAGE, c->o->place, "column %s is wanted twice", column_name(c, (size_t)i));
        c->slot[i] = (int)c->n_slots++;
    }
    return OK;
}

static Status choose_columns(Csv *c)
{
    const DataSpec *spec = c->o->q->spec;
    c->slot = NEWS(&c->o->scratch, int, c->n_columns);
    for (size_t i = 0; i < c->n_columns; i++)
        c->slot[i] = -1;
    if (!spec->n_columns)
        return want_columns(c, 0, (int)c->n_columns - 1);
    for (size_t i = 0; i < spec->n_columns; i++) {
        const Str text = str(spec->columns[i]);
        const char *dots = strstr(text.p, "..");
        int from = find_column(c, text), to = from;
        if (from < 0 && dots) {
            const Str a = { text.p, (size_t)(dots - text.p) }, b = str(dots + 2);
            from = find_column(c, a);
            to = find_column(c, b);
            if (from < 0 || to < 0)
                return no_column(c, from < 0 ? a : b);
        }
        if (from < 0)
            return no_column(c, text);
        if (to < from)
            return fail_as(c->o->d, USAGE, c->o->place, "column=%s counts backwards", text.p);
        TRY(want_columns(c, from, to));
    }
    return OK;
}

/* ---- records ---- */

static Status skip_lines(Csv *c, int64_t n)
{
    for (int b; n > 0 && (b = peek(c)) >= 0; step(c))
        n -= b == '\n';
    return c->broken ? IO : OK;
}

static Status read_first(Csv *c, bool *all_numbers)
{
    *all_numbers = true;
    for (bool last = false; !last;) {
        TRY(read_field(c, &last));
        if (c->n_columns == CSV_MOST_COLUMNS)
            return fail(c->o->d, place_here(c), "more than %d columns", CSV_MOST_COLUMNS);
        const Str s = trimmed(c);
        GROW(&c->o->scratch, c->first, c->n_columns, c->cap_columns);
        c->first[c->n_columns++] = arena_copy(&c->o->scratch, s.p, s.n);
        *all_numbers = *all_numbers && is_number(s);
    }
    return OK;
}

static Status add_record(Csv *c)
{
    size_t column = 0;
    const size_t base = c->n_values;
    for (size_t i = 0; i < c->n_slots; i++, c->n_values++)
        TRY(make_room(c));
    memset((int64_t *)c->values + base, 0, c->n_slots * sizeof(int64_t));
    for (bool last = false; !last; column++) {
        TRY(read_field(c, &last));
        if (column >= c->n_columns)
            return fail(c->o->d, place_here(c), "more fields than the %zu columns", c->n_columns);
        if (c->slot[column] >= 0)
            TRY(put_value(c, trimmed(c), column, base + (size_t)c->slot[column]));
    }
    return column == c->n_columns
               ? OK
               : fail(c->o->d, place_here(c), "the line has %zu fields, not %zu", column, c->n_columns);
}

/* A first line without a word in it is data, unless it was said otherwise: read once more. */
static Status read_names(Csv *c)
{
    bool all_numbers;
    const DataSpec *spec = c->o->q->spec;
    const bool said = data_given(spec, DATA_header);
    TRY(skip_lines(c, said ? spec->header - 1 : 0));
    while (at_blank_line(c))
        step(c);
    if (peek(c) == CSV_END)
        return opening_fail(c->o, "holds no lines");
    const uint64_t start = c->at - c->n + c->i;
    const int line = c->line;
    TRY(read_first(c, &all_numbers));
    if (said ? spec->header > 0 : !all_numbers)
        return OK;
    c->at = start;
    c->i = c->n = 0;
    c->line = line;
    c->column = 1;
    for (size_t i = 0; i < c->n_columns; i++)
        c->first[i] = NULL;
    return OK;
}

static Status read_records(Csv *c)
{
    uint8_t mark[3];
    Opening *o = c->o;
    if (o->n_head >= 3 && memcmp(o->head, "\xef\xbb\xbf", 3) == 0)
        for (size_t i = 0; i < sizeof mark && peek(c) >= 0; i++)
            c->i++;
    TRY(read_names(c));
    TRY(choose_columns(c));
    for (;;) {
        memory_poll(o->scratch.memory);
        while (at_blank_line(c))
            step(c);
        if (peek(c) < 0)
            return c->broken ? IO : OK;
        TRY(add_record(c));
    }
}

Status open_csv(Opening *o)
{
    Csv c = { .o = o, .line = 1, .column = 1, .whole = true };
    c.block = arena_alloc(&o->scratch, CSV_BLOCK);
    c.field = arena_alloc(&o->scratch, CSV_FIELD);
    TRY(read_records(&c));
    const int64_t dims[] = { (int64_t)(c.n_values / c.n_slots), (int64_t)c.n_slots };
    const Bytes elements = bytes_of(o->s->path, c.values, c.n_values * sizeof(int64_t));
    return opening_array(o, c.whole ? I64 : F64, c.n_slots > 1 ? 2 : 1, dims, &elements);
}
