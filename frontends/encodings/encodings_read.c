#include <math.h>
#include <string.h>

#include "base/map.h"
#include "frontends/encodings/encodings.h"
#include "ir/store/json_text.h"

enum { MOST_BITS = 32, MOST_SCALES = 1 << 20, DEEPEST = 16 };

typedef struct Reader {
    Encodings *to;
    Arena *arena;
    Diag *diag;
    const char *name; /* of the entry that is read */
    Map seen;         /* names of its section */
} Reader;

static Place place_of(const Reader *r)
{
    Place place = NOWHERE;
    place.file = r->to->path;
    place.where = r->name;
    return place;
}

#define WRONG(r, ...) fail((r)->diag, place_of(r), __VA_ARGS__)

/* ---- fields ---- */

/* A field under either of its names. */
static const json_t *field(const json_t *entry, const char *name, const char *other)
{
    const json_t *found = json_object_get(entry, name);
    return found ? found : json_object_get(entry, other);
}

/* "True" and "False" are words in older files. */
static bool is_true(const json_t *v)
{
    return json_is_true(v) || (json_is_string(v) && strcmp(json_string_value(v), "True") == 0);
}

static Status read_type(const Reader *r, const json_t *entry, Encoding *to)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    const json_t *bits = field(entry, "bw", "bitwidth");
    to->is_float = type && (strcmp(type, "float") == 0 || strcmp(type, "FLOAT") == 0);
    if (type && !to->is_float && strcmp(type, "int") != 0 && strcmp(type, "INT") != 0)
        return WRONG(r, "dtype is \"%s\": wanted are int and float", type);
    if (!json_is_integer(bits) || json_integer_value(bits) < 1 || json_integer_value(bits) > MOST_BITS)
        return WRONG(r, "no bits, bw or bitwidth, of 1 to %d", MOST_BITS);
    to->bits = json_integer_value(bits);
    to->symmetric = is_true(field(entry, "is_sym", "is_symmetric"));
    return OK;
}

/* A number, or the i-th of a list. */
static const json_t *item(const json_t *v, size_t i)
{
    return json_is_array(v) ? json_array_get(v, i) : v;
}

static Status read_number(const Reader *r, const json_t *s, size_t i, double *scale)
{
    *scale = json_number_value(s);
    if (!json_is_number(s) || !((float)*scale > 0) || !isfinite((float)*scale))
        return WRONG(r, "scale %zu is no number above 0", i);
    return OK;
}

static Status read_scale(const Reader *r, const json_t *entry, size_t i, double *scale, int64_t *offset)
{
    const json_t *o = item(json_object_get(entry, "offset"), i);
    const double least = json_number_value(o);
    TRY(read_number(r, item(json_object_get(entry, "scale"), i), i, scale));
    if (!json_is_number(o) || least != floor(least) || fabs(least) > ldexp(1, MOST_BITS))
        return WRONG(r, "offset %zu is no whole number", i);
    *offset = (int64_t)least;
    return OK;
}

static Status make_room(const Reader *r, Encoding *to, size_t n)
{
    if (n < 1 || n > MOST_SCALES)
        return WRONG(r, "%zu scales: wanted are 1 to %d", n, MOST_SCALES);
    to->n = n;
    to->scale = NEWS(r->arena, double, n);
    to->offset = NEWS(r->arena, int64_t, n);
    return OK;
}

/* Ends of a range that the file has beside scale and offset have to be those of the codes. */
static Status check_range(const Reader *r, const json_t *entry, const Encoding *e, size_t i)
{
    static const char *const ends[] = { "min", "max" };
    for (int k = 0; k < 2; k++) {
        const json_t *said = item(json_object_get(entry, ends[k]), i);
        const double code = (double)e->offset[i] + (k ? ldexp(1, (int)e->bits) - 1 : 0);
        if (json_is_number(said) && !(fabs(json_number_value(said) - code * e->scale[i]) <= 1.5 * e->scale[i]))
            return WRONG(r, "its %s is %g, but code %g times its scale is %g", ends[k], json_number_value(said), code,
                         code * e->scale[i]);
    }
    return OK;
}

/* ---- entries ---- */

static Status keep(Reader *r, const Encoding *e)
{
    bool fresh;
    map_put(&r->seen, e->name, &fresh);
    if (!fresh)
        return WRONG(r, "it is there twice");
    GROW(r->arena, r->to->list, r->to->n, r->to->cap);
    r->to->list[r->to->n++] = *e;
    return OK;
}

/* The form of 0.x: a list with an object for each channel. */
static Status read_by_channel(Reader *r, const json_t *list, Encoding *e)
{
    const size_t n = json_array_size(list);
    TRY(read_type(r, json_array_get(list, 0), e));
    if (e->is_float)
        return keep(r, e);
    TRY(make_room(r, e, n));
    for (size_t i = 0; i < n; i++) {
        Encoding other = { .n = 0 };
        const json_t *one = json_array_get(list, i);
        TRY(read_type(r, one, &other));
        if (other.is_float || other.bits != e->bits || other.symmetric != e->symmetric)
            return WRONG(r, "channel %zu has other bits, or another kind of codes, than channel 0", i);
        TRY(read_scale(r, one, 0, &e->scale[i], &e->offset[i]));
        TRY(check_range(r, one, e, i));
    }
    return keep(r, e);
}

/* The form of 1.0.0: an object with lists of scales and offsets. */
static Status read_by_list(Reader *r, const json_t *entry, Encoding *e)
{
    const char *kind = json_string_value(json_object_get(entry, "enc_type"));
    const json_t *scales = json_object_get(entry, "scale"), *offsets = json_object_get(entry, "offset");
    TRY(read_type(r, entry, e));
    if (e->is_float)
        return keep(r, e);
    if (kind && strcmp(kind, "PER_TENSOR") != 0 && strcmp(kind, "PER_CHANNEL") != 0)
        return fail_as(r->diag, UNSUPPORTED, place_of(r), "enc_type is %s: wanted are PER_TENSOR and PER_CHANNEL",
                       kind);
    if (json_array_size(scales) != json_array_size(offsets))
        return WRONG(r, "%zu scales and %zu offsets", json_array_size(scales), json_array_size(offsets));
    TRY(make_room(r, e, json_is_array(scales) ? json_array_size(scales) : 1));
    if (kind && strcmp(kind, "PER_TENSOR") == 0 && e->n != 1)
        return WRONG(r, "PER_TENSOR with %zu scales", e->n);
    for (size_t i = 0; i < e->n; i++) {
        TRY(read_scale(r, entry, i, &e->scale[i], &e->offset[i]));
        TRY(check_range(r, entry, e, i));
    }
    return keep(r, e);
}

/* "uint4", "int16"; 0: neither. */
static int64_t bits_of(const char *type, bool *is_signed)
{
    static const struct {
        const char *name;
        int bits;
    } types[] = { { "int4", 4 }, { "int8", 8 }, { "int16", 16 }, { "int32", 32 } };
    *is_signed = type[0] != 'u';
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(type + !*is_signed, types[i].name) == 0)
            return types[i].bits;
    return 0;
}

/* Scales, and the codes of 0 as the type has them. */
static Status read_zeros(const Reader *r, const json_t *entry, Encoding *e, bool is_signed)
{
    const json_t *scales = json_object_get(entry, "y_scale"), *zeros = json_object_get(entry, "y_zero_point");
    const int64_t least = is_signed ? -((int64_t)1 << (e->bits - 1)) : 0;
    TRY(make_room(r, e, json_is_array(scales) ? json_array_size(scales) : 1));
    if (json_is_array(zeros) && json_array_size(zeros) != e->n)
        return WRONG(r, "%zu scales and %zu zero points", e->n, json_array_size(zeros));
    for (size_t i = 0; i < e->n; i++) {
        const json_t *zero = item(zeros, i);
        TRY(read_number(r, item(scales, i), i, &e->scale[i]));
        if (zero && !json_is_integer(zero))
            return WRONG(r, "zero point %zu is no whole number", i);
        e->offset[i] = least - json_integer_value(zero);
    }
    return OK;
}

/* The form of 2.0.0: element types, scales and zero points as QuantizeLinear has them. */
static Status read_as_linear(Reader *r, const json_t *entry, Encoding *e)
{
    const char *type = json_string_value(json_object_get(entry, "output_dtype"));
    const json_t *axis = json_object_get(entry, "axis");
    bool is_signed;
    if (!type)
        return WRONG(r, "output_dtype is missing");
    e->is_float = strstr(type, "float") != NULL;
    e->bits = bits_of(type, &is_signed);
    if (e->is_float)
        return keep(r, e);
    if (!e->bits)
        return fail_as(r->diag, UNSUPPORTED, place_of(r),
                       "output_dtype is %s: wanted is int or uint of 4, 8 or 16 bits", type);
    if (json_object_get(entry, "block_size"))
        return fail_as(r->diag, UNSUPPORTED, place_of(r), "scales of blocks: wanted is one, or one a channel");
    if (axis && (!json_is_integer(axis) || json_integer_value(axis) < 0 || json_integer_value(axis) >= MAX_RANK))
        return WRONG(r, "axis is no axis");
    e->axis = axis ? (int)json_integer_value(axis) : NO_AXIS;
    TRY(read_zeros(r, entry, e, is_signed));
    return keep(r, e);
}

static Status read_entry(Reader *r, const char *name, const json_t *entry)
{
    Encoding e = { .name = name ? arena_string(r->arena, name) : NULL, .axis = NO_AXIS };
    r->name = e.name;
    if (!name)
        return WRONG(r, "an entry without a name");
    if (json_is_array(entry) && json_is_object(json_array_get(entry, 0)))
        return read_by_channel(r, entry, &e);
    if (!json_is_object(entry))
        return WRONG(r, "it is neither an object nor a list of them");
    return json_object_get(entry, "output_dtype") ? read_as_linear(r, entry, &e) : read_by_list(r, entry, &e);
}

static Status read_section(Reader *r, const json_t *root, const char *section)
{
    const json_t *all = json_object_get(root, section), *entry;
    const char *name;
    size_t i;
    r->name = section;
    map_open(&r->seen, r->arena);
    if (!all)
        return OK;
    if (json_is_array(all)) {
        json_array_foreach(all, i, entry) TRY(read_entry(r, json_string_value(json_object_get(entry, "name")), entry));
        return OK;
    }
    if (!json_is_object(all))
        return WRONG(r, "it is neither an object nor a list");
    json_object_foreach((json_t *)(uintptr_t)all, name, entry) TRY(read_entry(r, name, entry));
    return OK;
}

static Status read_root(Reader *r, const json_t *root)
{
    static const char *const sections[] = { "activation_encodings", "param_encodings", "encodings" };
    bool any = false;
    for (size_t i = 0; i < COUNT(sections); i++) {
        any |= json_object_get(root, sections[i]) != NULL;
        TRY(read_section(r, root, sections[i]));
    }
    r->name = NULL;
    return any ? OK : WRONG(r, "it has no encodings, activation_encodings or param_encodings");
}

static void drop_json(void *root)
{
    json_decref(root);
}

Status encodings_read(Encodings *e, const char *path, Str text, Arena *arena, Diag *d)
{
    json_error_t error;
    Cleanup cleanup;
    Reader r = { .to = e, .arena = arena, .diag = d };
    *e = (Encodings){ .path = path };
    if (json_nests(text, DEEPEST))
        return WRONG(&r, "it nests too deep");
    json_t *root = json_text(arena->memory, text.p, text.n, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return WRONG(&r, "it is no JSON: line %d: %s", error.line, error.text);
    cleanup_push(arena->memory, &cleanup, drop_json, root);
    const Status status = read_root(&r, root);
    cleanup_drop(&cleanup);
    json_decref(root);
    return status;
}
