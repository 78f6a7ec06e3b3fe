/* Searching: all states that the code may be in are followed at once.  Such a set of states is remembered with the sets
 * that follow it, so that a text is mostly read by looking up one number a character; when the memory for sets is full,
 * all are forgotten. */
#include "base/pattern_code.h"

#include <string.h>

enum { MOST_SETS = 512, LEAST_SETS = 8, MOST_STEPS = 1 << 16, LEAST_MEMBERS = 1 << 12, UNKNOWN = -1, ASCII = 128 };

/* A set of states in which a text may be, without those that only lead to others. */
typedef struct StateSet {
    size_t first, n; /* of the members */
    uint64_t hash;
    bool found;  /* the pattern is */
    bool at_end; /* it is if the text ends here */
} StateSet;

struct TextPattern {
    const PatternState *states;
    const PatternRange *ranges;
    size_t n;
    uint32_t *classes; /* the least character of each: characters of one class are in the same ranges */
    size_t n_classes;
    uint32_t ascii[ASCII]; /* their classes */
    StateSet *sets;        /* the first: where a text begins */
    int32_t *next;         /* by set and class; UNKNOWN */
    int32_t *slots;        /* sets but the first by hash; 0: free */
    size_t n_sets, most_sets, n_slots;
    uint32_t *members; /* of sets */
    size_t n_members, most_members;
    uint32_t *stack, *marks; /* of the walk under way; a state is marked with its number */
    uint32_t walk;
};

uint32_t pattern_character(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    const int more = p[0] >= 0xf0 && p[0] < 0xf8 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    (*text)++;
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xc2 || p[0] >= 0xf8)
        return PATTERN_BYTES + p[0];
    uint32_t c = p[0] & (0x3f >> more);
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return PATTERN_BYTES + p[0];
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[more] || c >= PATTERN_BYTES || (c >= 0xd800 && c < 0xe000))
        return PATTERN_BYTES + p[0];
    *text += more;
    return c;
}

/* ---- classes of characters ---- */

/* Sorts numbers upwards (heap sort: no memory, no recursion). */
static void sort(uint32_t *x, size_t n)
{
    for (size_t heap = n / 2, end = n; end > 1;) {
        if (heap) {
            heap--;
        } else {
            const uint32_t top = x[0];
            x[0] = x[--end];
            x[end] = top;
        }
        for (size_t at = heap, child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && x[child + 1] > x[child])
                child++;
            if (x[at] >= x[child])
                break;
            const uint32_t up = x[child];
            x[child] = x[at];
            x[at] = up;
        }
    }
}

static uint32_t class_of(const TextPattern *p, uint32_t character)
{
    size_t low = 0, high = p->n_classes;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (p->classes[middle] <= character)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static void open_classes(TextPattern *p, Arena *a, const PatternCode *code)
{
    size_t n = 0;
    p->classes = NEWS(a, uint32_t, 2 * code->n_ranges + 1);
    p->classes[n++] = 0;
    for (size_t i = 0; i < code->n_ranges; i++) {
        p->classes[n++] = code->ranges[i].low;
        p->classes[n++] = code->ranges[i].high + 1;
    }
    sort(p->classes, n);
    p->n_classes = 1;
    for (size_t i = 1; i < n; i++)
        if (p->classes[i] != p->classes[p->n_classes - 1])
            p->classes[p->n_classes++] = p->classes[i];
    for (uint32_t c = 0; c < ASCII; c++)
        p->ascii[c] = class_of(p, c);
}

static bool takes(const TextPattern *p, const PatternState *s, uint32_t character)
{
    const PatternRange *ranges = p->ranges + s->first;
    int32_t low = 0, high = s->second;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (ranges[middle].high < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->second && ranges[low].low <= character;
}

/* ---- sets of states ---- */

static void push(TextPattern *p, size_t *n, size_t state)
{
    if (p->marks[state] == p->walk)
        return;
    p->marks[state] = p->walk;
    p->stack[(*n)++] = (uint32_t)state;
}

/* Adds to the set under way what a state leads to without a character; whether the pattern is found there. */
static bool add(TextPattern *p, StateSet *set, size_t from, bool begins, bool ends)
{
    size_t n = 0;
    bool found = false;
    push(p, &n, from);
    while (n) {
        const size_t at = p->stack[--n];
        const PatternState *s = &p->states[at];
        if (s->kind == PATTERN_SPLIT)
            push(p, &n, at + (size_t)(ptrdiff_t)s->second);
        if (s->kind == PATTERN_SPLIT || s->kind == PATTERN_JUMP)
            push(p, &n, at + (size_t)(ptrdiff_t)s->first);
        else if ((s->kind == PATTERN_BEGIN && begins) || (s->kind == PATTERN_END && ends))
            push(p, &n, at + 1);
        else if (set && (s->kind == PATTERN_SET || s->kind == PATTERN_END))
            p->members[set->first + set->n++] = (uint32_t)at;
        found |= s->kind == PATTERN_FOUND;
    }
    return found;
}

/* A walk marks the states that it has seen with its number. */
static void begin_walk(TextPattern *p)
{
    if (!++p->walk) {
        memset(p->marks, 0, p->n * sizeof *p->marks);
        p->walk = 1;
    }
}

/* What is known of a set as a whole once it has all its members. */
static void finish(TextPattern *p, StateSet *set, bool begins)
{
    set->hash = 0;
    for (size_t i = 0; i < set->n; i++)
        set->hash = (set->hash ^ p->members[set->first + i]) * UINT64_C(0x9e3779b97f4a7c15);
    set->hash ^= set->hash >> 32;
    set->at_end = set->found;
    begin_walk(p);
    for (size_t i = 0; i < set->n && !set->at_end; i++) {
        const size_t at = p->members[set->first + i];
        if (p->states[at].kind == PATTERN_END)
            set->at_end = add(p, NULL, at, begins, true);
    }
}

static void forget(TextPattern *p)
{
    StateSet *begin = &p->sets[0];
    *begin = (StateSet){ 0 };
    memset(p->slots, 0, p->n_slots * sizeof *p->slots);
    begin_walk(p);
    begin->found = add(p, begin, 0, true, false);
    finish(p, begin, true);
    p->n_members = begin->n;
    p->n_sets = 1;
    for (size_t i = 0; i < p->n_classes; i++)
        p->next[i] = UNKNOWN;
}

/* The set's place: where an equal one is, or where it belongs. */
static size_t slot_of(const TextPattern *p, const StateSet *set)
{
    size_t slot = set->hash % p->n_slots;
    for (; p->slots[slot]; slot = (slot + 1) % p->n_slots) {
        const StateSet *other = &p->sets[p->slots[slot]];
        if (other->hash == set->hash && other->n == set->n && other->found == set->found &&
            memcmp(p->members + other->first, p->members + set->first, set->n * sizeof *p->members) == 0)
            break;
    }
    return slot;
}

/* Keeps a set whose members stand behind those of all others, or finds the equal one. */
static int32_t keep(TextPattern *p, const StateSet *set)
{
    const size_t slot = slot_of(p, set);
    if (p->slots[slot])
        return p->slots[slot];
    const int32_t number = (int32_t)p->n_sets++;
    p->slots[slot] = number;
    p->sets[number] = *set;
    p->n_members = set->first + set->n;
    for (size_t i = 0; i < p->n_classes; i++)
        p->next[(size_t)number * p->n_classes + i] = UNKNOWN;
    return number;
}

/* The set behind one and a character of a class; a match may begin there too. */
static int32_t follow(TextPattern *p, int32_t number, uint32_t class)
{
    StateSet *from = &p->sets[number], set = { .first = p->n_members };
    begin_walk(p);
    for (size_t i = 0; i < from->n; i++) {
        const size_t at = p->members[from->first + i];
        if (p->states[at].kind == PATTERN_SET && takes(p, &p->states[at], p->classes[class]))
            set.found |= add(p, &set, at + 1, false, false);
    }
    set.found |= add(p, &set, 0, false, false);
    finish(p, &set, false);
    if (p->n_sets < p->most_sets && set.first + set.n + p->n <= p->most_members)
        return p->next[(size_t)number * p->n_classes + class] = keep(p, &set);
    forget(p);
    memmove(p->members + p->n_members, p->members + set.first, set.n * sizeof *p->members);
    set.first = p->n_members;
    return keep(p, &set);
}

TextPattern *pattern_open(Arena *a, const PatternCode *code)
{
    TextPattern *p = NEW(a, TextPattern);
    *p = (TextPattern){ .states = code->states, .ranges = code->ranges, .n = code->n };
    open_classes(p, a, code);
    p->most_sets = MOST_STEPS / p->n_classes;
    p->most_sets = p->most_sets > MOST_SETS ? MOST_SETS : p->most_sets < LEAST_SETS ? LEAST_SETS : p->most_sets;
    p->n_slots = 2 * p->most_sets;
    p->most_members = 8 * p->n + LEAST_MEMBERS;
    p->sets = NEWS(a, StateSet, p->most_sets);
    p->next = arena_room(a, p->most_sets * p->n_classes * sizeof *p->next);
    p->slots = NEWS(a, int32_t, p->n_slots);
    p->members = arena_room(a, p->most_members * sizeof *p->members);
    p->stack = NEWS(a, uint32_t, p->n + 1);
    p->marks = NEWS(a, uint32_t, p->n);
    forget(p);
    return p;
}

bool pattern_finds(TextPattern *p, const char *text)
{
    int32_t at = 0;
    for (;;) {
        const StateSet *set = &p->sets[at];
        if (set->found || !*text || (!set->n && at))
            return set->found || (!*text && set->at_end);
        const uint32_t character = pattern_character(&text);
        const uint32_t class = character < ASCII ? p->ascii[character] : class_of(p, character);
        const int32_t next = p->next[(size_t)at * p->n_classes + class];
        at = next == UNKNOWN ? follow(p, at, class) : next;
    }
}
