#include "runtime/data/spec.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number_text.h"

static const char *const names[] = {
#define NAME(name, wants) #name,
    DATA_OPTIONS(NAME)
#undef NAME
};

#define STATIC "static"

static const char *const wants[] = {
#define WANTS(name, wants) wants,
    DATA_OPTIONS(WANTS)
#undef WANTS
};

const char *data_option_name(DataOption option)
{
    return option == DATA_dtype ? "the element type" : option == DATA_static ? STATIC : names[option];
}

typedef struct SpecReader {
    Diag *d;
    Arena *arena;
    DataSpec *spec;
    const char *whole; /* as it was written */
    int list;          /* the option that a bare word continues; -1: none */
    size_t cap[3];     /* of mean, std, columns */
} SpecReader;

static Place place_of(const SpecReader *r)
{
    return (Place){ .file = r->spec->flag, .where = r->whole, .byte = -1 };
}

static int option_of(Str name)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_is(name, names[i]))
            return (int)i;
    return -1;
}

static bool is_option_text(Str s)
{
    const char *equals = memchr(s.p, '=', s.n);
    DType dtype;
    return equals ? option_of((Str){ s.p, (size_t)(equals - s.p) }) >= 0
                  : str_is(s, STATIC) || dtype_from_name(s, &dtype);
}

/* The first piece of a text up to one of `ends`. */
static Str piece(const char *p, const char *ends)
{
    return (Str){ p, strcspn(p, ends) };
}

/* ---- where the file's name ends ---- */

static bool ends_in_extension(Str path)
{
    static const char *const known[] = { ".npy", ".npz", ".idx", ".gz", ".csv", ".bin", ".raw", ".pb", ".safetensors" };
    for (size_t i = 0; i < COUNT(known); i++) {
        const size_t n = strlen(known[i]);
        if (path.n >= n && memcmp(path.p + path.n - n, known[i], n) == 0)
            return true;
    }
    return str_is(path, "-");
}

/* Where FILE ends and options begin: names of files may hold colons, so what follows must look like an option, or what
 * stands before like a file of data. */
static size_t path_length(const char *text)
{
    for (const char *p = strchr(text, ':'); p; p = strchr(p + 1, ':'))
        if (is_option_text(piece(p + 1, ",")) || ends_in_extension((Str){ text, (size_t)(p - text) }))
            return (size_t)(p - text);
    return strlen(text);
}

/* The length of NAME in NAME=FILE; 0 without one.  An = behind the file's name belongs to an option. */
static size_t name_length(const char *text)
{
    const size_t n = strcspn(text, "=");
    return text[n] && path_length(text) > n ? n : 0;
}

/* ---- values of options ---- */

static Status wanted(const SpecReader *r, int option, Str value)
{
    return fail_as(r->d, USAGE, place_of(r), "%s wants %s: got '%.*s'", names[option], wants[option], STR_ARG(value));
}

static Status read_shape(SpecReader *r, Str v)
{
    DataSpec *s = r->spec;
    const char *p = v.p, *end = v.p + v.n;
    for (s->rank = 0; p <= end; s->rank++) {
        const char *x = memchr(p, 'x', (size_t)(end - p)), *stop = x ? x : end;
        if (s->rank == MAX_RANK - 1 || !i64_from_text(p, (size_t)(stop - p), &s->dims[s->rank]) || s->dims[s->rank] < 1)
            return wanted(r, DATA_shape, v);
        p = stop + 1;
    }
    return OK;
}

static bool read_number(Str v, double *out)
{
    return f64_from_text(v.p, v.n, out) && isfinite(*out);
}

static Status read_scale(SpecReader *r, Str v)
{
    DataSpec *s = r->spec;
    const char *slash = memchr(v.p, '/', v.n);
    const Str over = slash ? (Str){ slash + 1, (size_t)(v.p + v.n - slash - 1) } : str("1");
    if (!read_number((Str){ v.p, slash ? (size_t)(slash - v.p) : v.n }, &s->scale) || !read_number(over, &s->divisor) ||
        s->divisor == 0)
        return wanted(r, DATA_scale, v);
    return OK;
}

static Status read_rows(SpecReader *r, Str v)
{
    DataSpec *s = r->spec;
    const char *colon = memchr(v.p, ':', v.n);
    if (!colon)
        return wanted(r, DATA_rows, v);
    const Str a = { v.p, (size_t)(colon - v.p) }, b = { colon + 1, (size_t)(v.p + v.n - colon - 1) };
    if ((a.n && (!i64_from_text(a.p, a.n, &s->from) || s->from < 0)) ||
        (b.n && (!i64_from_text(b.p, b.n, &s->to) || s->to <= s->from)))
        return wanted(r, DATA_rows, v);
    return OK;
}

static Status add_real(SpecReader *r, int option, Str v)
{
    DataSpec *s = r->spec;
    const bool is_std = option == DATA_std;
    double **list = is_std ? &s->std : &s->mean;
    size_t *n = is_std ? &s->n_std : &s->n_mean;
    double x;
    if (!read_number(v, &x) || (is_std && x == 0) || *n == DATA_MOST_LIST)
        return wanted(r, option, v);
    GROW(r->arena, *list, *n, r->cap[is_std]);
    (*list)[(*n)++] = x;
    return OK;
}

static Status add_column(SpecReader *r, Str v)
{
    DataSpec *s = r->spec;
    if (!v.n || s->n_columns == DATA_MOST_LIST)
        return wanted(r, DATA_column, v);
    GROW(r->arena, s->columns, s->n_columns, r->cap[2]);
    s->columns[s->n_columns++] = arena_copy(r->arena, v.p, v.n);
    return OK;
}

static Status read_value(SpecReader *r, int option, Str v)
{
    DataSpec *s = r->spec;
    switch (option) {
    case DATA_shape:
        return read_shape(r, v);
    case DATA_layout:
        s->nhwc = str_is(v, "nhwc");
        return s->nhwc || str_is(v, "nchw") ? OK : wanted(r, option, v);
    case DATA_scale:
        return read_scale(r, v);
    case DATA_mean:
    case DATA_std:
        return add_real(r, option, v);
    case DATA_column:
        return add_column(r, v);
    case DATA_header:
        return i64_from_text(v.p, v.n, &s->header) && s->header >= 0 ? OK : wanted(r, option, v);
    case DATA_rows:
        return read_rows(r, v);
    default:
        s->key = arena_copy(r->arena, v.p, v.n);
        return v.n ? OK : wanted(r, option, v);
    }
}

static Status unknown_option(const SpecReader *r, Str name)
{
    const char *word = arena_copy(r->d->arena, name.p, name.n);
    const char *near = str_nearest(word, names, COUNT(names));
    Message *m = message_new(r->d, SEVERITY_ERROR, USAGE, place_of(r), "no option of data is called '%s'", word);
    if (near)
        message_try(m, "%s: %s", near, wants[option_of(str(near))]);
    return message_send(m);
}

static Status read_option(SpecReader *r, Str text)
{
    DataSpec *s = r->spec;
    const char *equals = memchr(text.p, '=', text.n);
    const Str name = { text.p, equals ? (size_t)(equals - text.p) : text.n };
    DType dtype;
    if (!equals && str_is(name, STATIC)) {
        s->given |= 1u << DATA_static;
        r->list = -1;
        return OK;
    }
    if (!equals && dtype_from_name(name, &dtype) && dtype != STRING) {
        if (data_given(s, DATA_dtype))
            return fail_as(r->d, USAGE, place_of(r), "has two element types");
        s->dtype = dtype;
        s->given |= 1u << DATA_dtype;
        r->list = -1;
        return OK;
    }
    if (!equals)
        return r->list >= 0 ? read_value(r, r->list, text) : unknown_option(r, name);
    const int option = option_of(name);
    if (option < 0)
        return unknown_option(r, name);
    if (data_given(s, (DataOption)option))
        return fail_as(r->d, USAGE, place_of(r), "%s is given twice", names[option]);
    s->given |= 1u << option;
    r->list = option == DATA_mean || option == DATA_std || option == DATA_column ? option : -1;
    return read_value(r, option, (Str){ equals + 1, (size_t)(text.p + text.n - equals - 1) });
}

static Status read_file(SpecReader *r, const char *text)
{
    DataSpec *s = r->spec;
    const size_t n = path_length(text);
    const char *p = text + n;
    s->path = arena_copy(r->arena, text, n);
    if (!n)
        return fail_as(r->d, USAGE, place_of(r), "names no file");
    while (*p) {
        const Str option = piece(p + 1, ",");
        TRY(read_option(r, option));
        p = option.p + option.n;
    }
    return OK;
}

Status data_spec_read(Diag *d, Arena *arena, const char *flag, const char *text, DataSpec *spec)
{
    SpecReader r = { .d = d, .arena = arena, .spec = spec, .whole = text, .list = -1 };
    const size_t n = name_length(text);
    *spec = (DataSpec){ .flag = flag, .scale = 1, .divisor = 1, .header = -1, .to = -1 };
    spec->target = strlen(flag) >= 6 && strcmp(flag + strlen(flag) - 6, "target") == 0;
    if (text[0] == '=')
        return fail_as(d, USAGE, place_of(&r), "names no input");
    if (n)
        spec->name = arena_copy(arena, text, n);
    spec->text = arena_string(arena, text + n + (n > 0));
    if (strcmp(spec->text, "next") == 0) {
        spec->kind = DATA_NEXT;
    } else if (strcmp(spec->text, "none") == 0) {
        spec->kind = DATA_NONE;
    } else if (strncmp(spec->text, "same:", 5) == 0) {
        spec->kind = DATA_SAME;
        spec->same = spec->text + 5;
        return *spec->same ? OK : fail_as(d, USAGE, place_of(&r), "same: names no input");
    } else {
        return read_file(&r, spec->text);
    }
    return OK;
}

Status data_fill_read(Diag *d, Arena *arena, const char *flag, const char *text, DataFill *fill)
{
    const Place place = { .file = flag, .where = text, .byte = -1 };
    const char *equals = strrchr(text, '='); /* names may hold one, values do not */
    *fill = (DataFill){ 0 };
    if (!equals || equals == text)
        return fail_as(d, USAGE, place, "wants NAME=VALUE or NAME=range");
    fill->name = arena_copy(arena, text, (size_t)(equals - text));
    const Str value = str(equals + 1);
    fill->range = str_is(value, "range");
    fill->whole = i64_from_text(value.p, value.n, &fill->integer);
    if (fill->whole)
        fill->value = (double)fill->integer;
    else if (!fill->range && !f64_from_text(value.p, value.n, &fill->value))
        return fail_as(d, USAGE, place, "'%s' is no number and not range", value.p);
    return OK;
}

const char *data_spec_with(Arena *arena, const DataSpec *spec, const char *input, const char *option)
{
    const bool any = spec->given != 0;
    const char *name = spec->name ? spec->name : input;
    return arena_printf(arena, "%s %s%s%s%s%s", spec->flag, name ? name : "", name ? "=" : "", spec->text,
                        any ? "," : ":", option);
}
