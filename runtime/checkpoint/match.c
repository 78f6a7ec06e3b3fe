#include "runtime/checkpoint/match.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "ops/update/shadow.h"

void report_missing(Arena *arena, StateReport *r, const char *name)
{
    GROW(arena, r->missing, r->n_missing, r->cap_missing);
    r->missing[r->n_missing++] = name;
}

void report_unexpected(Arena *arena, StateReport *r, const char *name)
{
    GROW(arena, r->unexpected, r->n_unexpected, r->cap_unexpected);
    r->unexpected[r->n_unexpected++] = arena_string(arena, name);
}

void report_misshapen(Arena *arena, StateReport *r, const char *name, const Type *got, const Type *want)
{
    GROW(arena, r->misshapen, r->n_misshapen, r->cap_misshapen);
    r->misshapen[r->n_misshapen++] =
        arena_printf(arena, "%s is %s and not %s", name, type_text(arena, got), type_text(arena, want));
}

static bool same_shape(const Type *a, const Type *b)
{
    return a->rank == b->rank && bytes_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* Types that the format cannot name were stored as bytes. */
static bool is_stored_as(const Type *file, const Type *slot)
{
    size_t bytes, stored;
    return !safetensors_dtype(slot->dtype) && file->dtype == U8 && file->rank == 1 && type_bytes(slot, &bytes) &&
           type_bytes(file, &stored) && bytes == stored;
}

static bool fits(const Type *file, const Type *slot, bool convert, bool *converted)
{
    *converted = false;
    if (file == slot || is_stored_as(file, slot))
        return true;
    if (!same_shape(file, slot))
        return false;
    *converted = file->dtype != slot->dtype;
    return !*converted || (convert && dtype_is_float(file->dtype) && dtype_is_float(slot->dtype));
}

/* The dimensions that are not 1, in their order. */
static bool same_but_ones(const Type *a, const Type *b)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1)
            i++;
        while (k < b->rank && b->dims[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++])
            return false;
    }
}

static bool is_reversed(const Type *a, const Type *b)
{
    return a->rank == 2 && b->rank == 2 && a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0];
}

bool match_is_turned(const Type *file, const StateSlot *slot, bool ours)
{
    return !ours && is_reversed(file, slot->type) && (slot->turned || !same_shape(file, slot->type));
}

/* Weights of another program may be transposed, or have other dimensions of 1. */
static bool fits_otherwise(const Type *file, const StateSlot *slot, bool ours, bool *converted)
{
    *converted = file->dtype != slot->type->dtype;
    return !ours && (is_reversed(file, slot->type) || same_but_ones(file, slot->type)) &&
           (!*converted || (dtype_is_float(file->dtype) && dtype_is_float(slot->type->dtype)));
}

bool match_fits(const Type *file, const StateSlot *slot, bool ours, bool *converted)
{
    return fits(file, slot->type, true, converted) || fits_otherwise(file, slot, ours, converted);
}

bool match_is_scale(const char *name)
{
    return strcmp(name, "qcc.scale") == 0 || strcmp(name, "qcc.scaler") == 0;
}

/* Counters as a later version may have them: the ones that we know come first. */
static bool is_longer(const Type *file, const StateSlot *slot)
{
    return strcmp(slot->name, "qcc.scaler") == 0 && file->dtype == slot->type->dtype && file->rank == 1 &&
           slot->type->rank == 1 && file->dims[0] > slot->type->dims[0];
}

static void index_name(Map *map, const char *name, size_t slot)
{
    bool fresh;
    MapEntry *e = name ? map_put(map, name, &fresh) : NULL;
    if (e && fresh)
        e->value.u = slot;
}

/* Slots by all names; a name of one slot wins over the path name of another, and that over other names. */
static void index_slots(Map *map, Arena *arena, const StateSlot *slots, size_t n)
{
    map_open(map, arena);
    for (size_t i = 0; i < n; i++)
        map_put(map, slots[i].name, NULL)->value.u = i;
    for (size_t i = 0; i < n; i++)
        index_name(map, slots[i].path_name, i);
    for (size_t i = 0; i < n; i++)
        for (const char *const *also = slots[i].also; also && *also; also++)
            index_name(map, *also, i);
}

bool match_is_ours(const SafeTensors *s)
{
    return s->n_metadata && safetensors_metadata(s, "qcc.format");
}

int64_t *match_slots(Arena *arena, const SafeTensors *s, const StateSlot *slots, size_t n, bool convert,
                     StateReport *report)
{
    Map by_name;
    bool converted, *seen = NEWS(arena, bool, n);
    int64_t *to = NEWS(arena, int64_t, s->n);
    *report = (StateReport){ 0 };
    index_slots(&by_name, arena, slots, n);
    for (size_t i = 0; i < s->n; i++) {
        const SafeTensor *t = &s->list[i];
        const MapEntry *e = map_find(&by_name, t->name);
        const bool ours = (convert && strncmp(t->name, "qcc.", 4) == 0) || match_is_scale(t->name) ||
                          shadow_master(t->name); /* which are made from masters, whatever a file says */
        to[i] = MATCH_NONE;
        if (convert && e && seen[e->value.u] && !ours)
            to[i] = MATCH_AGAIN - (int64_t)e->value.u;
        if (!e || seen[e->value.u]) {
            if (!ours && !(convert && e))
                report_unexpected(arena, report, t->name);
            continue;
        }
        const StateSlot *slot = &slots[e->value.u];
        seen[e->value.u] = true;
        if (is_longer(t->type, slot)) {
            report->n_matched++;
            continue;
        }
        if (convert && slot->own_order && !match_is_ours(s)) {
            GROW(arena, report->misshapen, report->n_misshapen, report->cap_misshapen);
            report->misshapen[report->n_misshapen++] =
                arena_printf(arena, "%s (in the model its gates stand in another order)", slot->name);
            continue;
        }
        if (!fits(t->type, slot->type, convert, &converted) &&
            !(convert && fits_otherwise(t->type, slot, match_is_ours(s), &converted))) {
            report_misshapen(arena, report, slot->name, t->type, slot->type);
            continue;
        }
        to[i] = (int64_t)e->value.u;
        report->n_matched++;
        report->n_converted += converted;
        report->n_turned += convert && match_is_turned(t->type, slot, match_is_ours(s));
    }
    for (size_t i = 0; i < n; i++)
        if (!seen[i] && !slots[i].may_lack)
            report_missing(arena, report, slots[i].name);
    return to;
}

static void print_list(Text *out, const char *word, const char *const *list, size_t n)
{
    enum { MOST = 20 };
    for (size_t i = 0; i < n && i < MOST; i++) {
        text_printf(out, "  %-11s ", i ? "" : word);
        text_escape(out, list[i], strlen(list[i]), SIZE_MAX);
        text_char(out, '\n');
    }
    if (n > MOST)
        text_printf(out, "  %-11s and %zu more\n", "", n - MOST);
}

void state_report_print(Text *out, const StateReport *r)
{
    text_printf(out, "  %-11s %zu", "matched", r->n_matched);
    if (r->n_converted)
        text_printf(out, ", %zu of them converted", r->n_converted);
    if (r->n_turned)
        text_printf(out, ", %zu transposed", r->n_turned);
    text_char(out, '\n');
    print_list(out, "missing", r->missing, r->n_missing);
    print_list(out, "unexpected", r->unexpected, r->n_unexpected);
    print_list(out, "misshapen", r->misshapen, r->n_misshapen);
}
