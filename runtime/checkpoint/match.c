#include "runtime/checkpoint/match.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "ir/role.h"

void report_missing(Arena *arena, StateReport *r, const StateSlot *slot)
{
    GROW(arena, r->missing, r->n_missing, r->cap_missing);
    r->missing[r->n_missing++] = slot->name;
    r->model_differs |= role_is_of_model(slot->mark.role);
}

void report_unexpected(Arena *arena, StateReport *r, const char *name)
{
    GROW(arena, r->unexpected, r->n_unexpected, r->cap_unexpected);
    r->unexpected[r->n_unexpected++] = arena_string(arena, name);
}

/* Whether a file has as many numbers, in another type; codes that the format has no name for are bytes, two in each. */
static bool is_other_width(const Type *got, const Type *want)
{
    const int64_t n = type_elements(got), m = type_elements(want);
    return type_same_shape(got, want) ? got->dtype != want->dtype
                                      : got->dtype == U8 && got->rank == 1 && n == m / 2 + m % 2;
}

void report_misshapen(Arena *arena, StateReport *r, const StateSlot *slot, const char *name, const Type *got,
                      const Type *want)
{
    GROW(arena, r->misshapen, r->n_misshapen, r->cap_misshapen);
    r->misshapen[r->n_misshapen++] =
        arena_printf(arena, "%s is %s and not %s", name, type_text(arena, got), type_text(arena, want));
    r->model_differs |= role_is_of_model(slot->mark.role);
    r->n_other_states += slot->mark.role == STATE_moment && is_other_width(got, want);
    r->n_other_weights += slot->mark.role == STATE_weight && is_other_width(got, want);
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
    if (!type_same_shape(file, slot))
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
    return !ours && is_reversed(file, slot->type) && (slot->turned || !type_same_shape(file, slot->type));
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
    return role_by_name(ROLES_OF_STATES, name).role == STATE_scaler;
}

/* Counters as a later version may have them: the ones that we know come first. */
static bool is_longer(const Type *file, const StateSlot *slot)
{
    return slot->mark.role == STATE_scaler && slot->mark.of && file->dtype == slot->type->dtype && file->rank == 1 &&
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
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; slots[i].pieces && k < slots[i].pieces->n; k++)
            index_name(map, slots[i].pieces->pieces[k].name, i);
}

bool match_is_ours(const SafeTensors *s)
{
    return s->n_metadata && safetensors_metadata(s, "qcc.format");
}

typedef struct Matching {
    Arena *arena;
    const StateSlot *slots;
    StateReport *report;
    bool *seen;
    size_t *found; /* pieces */
    bool convert, ours;
} Matching;

const GatePiece *match_piece(const StateSlot *slot, const char *name)
{
    const StateGates *g = slot->pieces;
    for (size_t i = 0; g && i < g->n; i++)
        if (strcmp(g->pieces[i].name, name) == 0)
            return &g->pieces[i];
    return NULL;
}

static int64_t fit_piece(const Matching *m, const SafeTensor *t, size_t slot)
{
    const StateGates *g = m->slots[slot].pieces;
    const bool convert = t->type->dtype != g->type->dtype;
    if (!type_same_shape(t->type, g->type) || (convert && !dtype_is_float(t->type->dtype))) {
        report_misshapen(m->arena, m->report, &m->slots[slot], t->name, t->type, g->type);
        m->seen[slot] = true;
        return MATCH_NONE;
    }
    if (++m->found[slot] == g->n) {
        m->seen[slot] = true;
        m->report->n_matched++;
        m->report->n_reordered++;
        m->report->n_converted += convert;
    }
    return (int64_t)slot;
}

static int64_t fit_slot(const Matching *m, const SafeTensor *t, size_t i)
{
    bool converted;
    StateReport *r = m->report;
    const StateSlot *slot = &m->slots[i];
    m->seen[i] = true;
    if (is_longer(t->type, slot)) {
        r->n_matched++;
        return MATCH_NONE;
    }
    if (m->convert && slot->own_order && !m->ours) {
        GROW(m->arena, r->misshapen, r->n_misshapen, r->cap_misshapen);
        r->misshapen[r->n_misshapen++] =
            arena_printf(m->arena, "%s (in the model its gates stand in another order)", slot->name);
        return MATCH_NONE;
    }
    if (!fits(t->type, slot->type, m->convert, &converted) &&
        !(m->convert && fits_otherwise(t->type, slot, m->ours, &converted))) {
        report_misshapen(m->arena, r, slot, slot->name, t->type, slot->type);
        return MATCH_NONE;
    }
    r->n_matched++;
    r->n_converted += converted;
    r->n_turned += m->convert && match_is_turned(t->type, slot, m->ours);
    return (int64_t)i;
}

static int64_t match(const Matching *m, const SafeTensor *t, const MapEntry *e)
{
    const int role = role_by_name(ROLES_OF_STATES, t->name).role; /* a file has names alone */
    const bool own = (m->convert && !role_is_of_model(role)) || role == STATE_scaler ||
                     role == STATE_shadow; /* which are made from masters, whatever a file says */
    if (e && m->convert && !m->ours && match_piece(&m->slots[e->value.u], t->name))
        return fit_piece(m, t, e->value.u);
    if (e && !m->seen[e->value.u])
        return fit_slot(m, t, e->value.u);
    if (!own && !(m->convert && e))
        report_unexpected(m->arena, m->report, t->name);
    return m->convert && e && !own ? MATCH_AGAIN - (int64_t)e->value.u : MATCH_NONE;
}

int64_t *match_slots(Arena *arena, const SafeTensors *s, const StateSlot *slots, size_t n, bool convert,
                     StateReport *report)
{
    Map by_name;
    int64_t *to = NEWS(arena, int64_t, s->n);
    const Matching m = {
        arena, slots, report, NEWS(arena, bool, n), NEWS(arena, size_t, n), convert, match_is_ours(s)
    };
    *report = (StateReport){ 0 };
    index_slots(&by_name, arena, slots, n);
    for (size_t i = 0; i < s->n; i++)
        to[i] = match(&m, &s->list[i], map_find(&by_name, s->list[i].name));
    for (size_t i = 0; i < n; i++)
        if (!m.seen[i] && !slots[i].may_lack)
            report_missing(arena, report, &slots[i]);
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
    if (r->n_coded)
        text_printf(out, ", %zu of them codes", r->n_coded);
    if (r->n_turned)
        text_printf(out, ", %zu transposed", r->n_turned);
    if (r->n_reordered)
        text_printf(out, ", %zu with gates in ONNX's order", r->n_reordered);
    text_char(out, '\n');
    print_list(out, "missing", r->missing, r->n_missing);
    print_list(out, "unexpected", r->unexpected, r->n_unexpected);
    print_list(out, "misshapen", r->misshapen, r->n_misshapen);
}
