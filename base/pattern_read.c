/* Reading expressions, from left to right and without recursion: a piece of code is made where its text stands, a sign
 * behind it changes it in place, and open groups wait on a stack. */
#include "base/pattern_code.h"

#include <string.h>

/* A group that is open. */
typedef struct PatternGroup {
    size_t begin;  /* its code */
    size_t branch; /* that of the alternative under way */
    size_t jumps;  /* the last state that is to jump behind the group, plus 1; it holds the one before it */
    const char *at;
} PatternGroup;

typedef struct Reader {
    Arena *arena;
    const char *text, *at;
    size_t most;
    PatternCode code;
    PatternGroup *groups; /* the first is the whole */
    size_t n_groups, cap_groups;
    PatternFault *fault;
} Reader;

static bool wrong(Reader *r, const char *at, const char *what, const char *instead)
{
    *r->fault = (PatternFault){ .what = what, .instead = instead, .at = (size_t)(at - r->text) };
    return false;
}

/* ---- code ---- */

/* Whether there is room for `n` more of what is counted: states, ranges and groups that are open. */
static bool has_room(Reader *r, size_t n)
{
    const size_t used = r->code.n + r->code.n_ranges + r->n_groups;
    if (used <= r->most && n <= r->most - used)
        return true;
    wrong(r, r->at, "it needs too many states", NULL);
    r->fault->is_large = true;
    return false;
}

/* Room for `n` more states, which has_room() granted. */
static PatternState *more_states(Reader *r, size_t n)
{
    PatternCode *c = &r->code;
    if (c->cap - c->n < n) {
        const size_t cap = 2 * c->cap + n + 8;
        c->states = arena_grow(r->arena, c->states, c->n, cap, sizeof *c->states);
        c->cap = cap;
    }
    c->n += n;
    return c->states + c->n - n;
}

static bool add_state(Reader *r, PatternState s)
{
    if (!has_room(r, 1))
        return false;
    *more_states(r, 1) = s;
    return true;
}

/* A state before a piece that goes on to the end of the code. */
static bool insert_state(Reader *r, size_t at, PatternState s)
{
    if (!has_room(r, 1))
        return false;
    more_states(r, 1);
    PatternState *states = r->code.states + at;
    memmove(states + 1, states, (r->code.n - 1 - at) * sizeof *states);
    *states = s;
    return true;
}

static PatternState split(size_t first, ptrdiff_t second)
{
    return (PatternState){ PATTERN_SPLIT, (int32_t)first, (int32_t)second };
}

static void copy_piece(Reader *r, size_t at, size_t n)
{
    PatternState *copy = more_states(r, n);
    memcpy(copy, r->code.states + at, n * sizeof *copy);
}

/* The piece from `at` on once or more, or (none) any number of times. */
static bool repeat_freely(Reader *r, size_t at, bool none)
{
    const size_t n = r->code.n - at;
    if (!none)
        return add_state(r, split(1, -(ptrdiff_t)n));
    return insert_state(r, at, split(1, (ptrdiff_t)n + 2)) &&
           add_state(r, (PatternState){ PATTERN_JUMP, -(int32_t)n - 1, 0 });
}

/* The piece from `at` on, `least` to `most` times; most < 0: any number. */
static bool repeat(Reader *r, size_t at, int64_t least, int64_t most)
{
    const size_t n = r->code.n - at, times = (size_t)(least ? least : 1), maybe = (size_t)(most - (least ? least : 1));
    if (most == 0 || !n) {
        r->code.n = at;
        return true;
    }
    if (!has_room(r, (times - 1) * n + (most < 0 ? 2 : maybe * (n + 1) + 1)))
        return false;
    if (most < 0 && !least)
        return repeat_freely(r, at, true);
    if (most < 0) {
        for (size_t i = 1; i < times; i++)
            copy_piece(r, at, n);
        return repeat_freely(r, r->code.n - n, false);
    }
    for (size_t i = 1; i < times; i++)
        copy_piece(r, at, n);
    for (size_t left = maybe; left; left--) {
        *more_states(r, 1) = split(1, (ptrdiff_t)(left * (n + 1)));
        copy_piece(r, at, n);
    }
    return least || insert_state(r, at, split(1, (ptrdiff_t)(n + maybe * (n + 1) + 1)));
}

/* ---- sets of characters ---- */

typedef struct NamedSet {
    const char *name;
    uint8_t ranges[10]; /* low and high; zeros end them */
} NamedSet;

/* clang-format off */
static const NamedSet named_sets[] = {
    { "alpha",  "AZaz" },      { "digit", "09" },         { "alnum", "09AZaz" },         { "upper", "AZ" },
    { "lower",  "az" },        { "blank", "\t\t  " },     { "space", "\t\r  " },         { "print", " ~" },
    { "graph",  "!~" },        { "punct", "!/:@[`{~" },   { "cntrl", "\1\37\177\177" },  { "xdigit", "09AFaf" },
    { "word",   "09AZ__az" },
};
/* clang-format on */

static bool add_range(Reader *r, uint32_t low, uint32_t high)
{
    PatternCode *c = &r->code;
    if (!has_room(r, 1))
        return false;
    GROW(r->arena, c->ranges, c->n_ranges, c->cap_ranges);
    c->ranges[c->n_ranges++] = (PatternRange){ low, high };
    return true;
}

/* Puts the ranges from `first` on in order and joins those that touch. */
static void order_ranges(PatternCode *c, size_t first)
{
    PatternRange *x = c->ranges + first;
    const size_t n = c->n_ranges - first;
    size_t kept = 0;
    for (size_t i = 1; i < n; i++) {
        const PatternRange one = x[i];
        size_t at = i;
        for (; at > 0 && x[at - 1].low > one.low; at--)
            x[at] = x[at - 1];
        x[at] = one;
    }
    for (size_t i = 1; i < n; i++) {
        if (x[i].low > x[kept].high + 1)
            x[++kept] = x[i];
        else if (x[i].high > x[kept].high)
            x[kept].high = x[i].high;
    }
    if (n)
        c->n_ranges = first + kept + 1;
}

/* The ranges from `first` on become all the others. */
static bool turn_ranges(Reader *r, size_t first)
{
    PatternCode *c = &r->code;
    uint32_t low = 0;
    order_ranges(c, first);
    const size_t n = c->n_ranges - first;
    for (size_t i = 0; i < n; i++) {
        const PatternRange one = c->ranges[first + i];
        if (one.low > low && !add_range(r, low, one.low - 1))
            return false;
        low = one.high + 1;
    }
    if (low < PATTERN_CHARACTERS && !add_range(r, low, PATTERN_CHARACTERS - 1))
        return false;
    if (n) {
        memmove(c->ranges + first, c->ranges + first + n, (c->n_ranges - first - n) * sizeof *c->ranges);
        c->n_ranges -= n;
    }
    return true;
}

/* Adds the ranges of a name; false where there is none of n letters, or no room. */
static bool add_named(Reader *r, const char *name, size_t n, bool *known)
{
    *known = false;
    for (size_t i = 0; i < COUNT(named_sets); i++) {
        const NamedSet *s = &named_sets[i];
        if (strlen(s->name) != n || strncmp(s->name, name, n) != 0)
            continue;
        *known = true;
        for (const uint8_t *p = s->ranges; *p; p += 2)
            if (!add_range(r, p[0], p[1]))
                return false;
    }
    return *known;
}

/* What stands behind a backslash: a set of characters (*is_set; its ranges are added), or a sign. */
static bool read_escape(Reader *r, uint32_t *character, bool *is_set)
{
    const char *at = r->at++, c = *r->at;
    const char *name = c == 'd' || c == 'D' ? "digit" : c == 'w' || c == 'W' ? "word" : "space";
    const size_t first = r->code.n_ranges;
    bool known;
    *is_set = c && strchr("dDwWsS", c);
    if (!c)
        return wrong(r, at, "the \\ has nothing behind it", "\\\\");
    if (*is_set) {
        r->at++;
        return add_named(r, name, strlen(name), &known) && (c >= 'a' || turn_ranges(r, first));
    }
    if (c >= '0' && c <= '9')
        return wrong(r, at, "nothing refers back to a group", NULL);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return wrong(r, at, "the \\ before this letter means nothing; \\d \\w \\s \\D \\W \\S are known", NULL);
    *character = pattern_character(&r->at);
    return true;
}

/* [:alpha:] inside of brackets. */
static bool read_class(Reader *r)
{
    const char *name = r->at + 2, *end = strstr(name, ":]");
    bool known = false;
    if (end && !add_named(r, name, (size_t)(end - name), &known) && known)
        return false;
    if (!known)
        return wrong(r, r->at, "no class of characters is called so",
                     "one of [:alpha:] [:digit:] [:alnum:] [:upper:] [:lower:] [:space:] [:blank:] [:punct:] [:print:] "
                     "[:graph:] [:cntrl:] [:xdigit:] [:word:]");
    r->at = end + 2;
    return true;
}

/* One thing of a bracket: a class, or a character (*is_set false). */
static bool read_element(Reader *r, uint32_t *character, bool *is_set)
{
    *is_set = r->at[0] == '[' && r->at[1] == ':';
    if (*is_set)
        return read_class(r);
    if (r->at[0] == '[' && (r->at[1] == '.' || r->at[1] == '='))
        return wrong(r, r->at, "there are no locales here, hence no such element", "\\[");
    if (*r->at == '\\')
        return read_escape(r, character, is_set);
    *character = pattern_character(&r->at);
    return true;
}

/* A thing of a bracket and, behind a -, where its range ends. */
static bool read_member(Reader *r, bool is_first)
{
    const char *at = r->at;
    uint32_t low = 0, high;
    bool is_set, to_set = false;
    if (at[0] == '-' && at[1] && !strchr("]-", at[1]) && !is_first)
        return wrong(r, at, "this - is neither a range nor first or last", "\\-");
    if (!read_element(r, &low, &is_set))
        return false;
    const bool is_range = r->at[0] == '-' && r->at[1] && r->at[1] != ']';
    if (!is_range)
        return is_set || add_range(r, low, low);
    const char *hyphen = r->at++;
    if (is_set || (!read_element(r, &high, &to_set) || to_set))
        return is_set || to_set ? wrong(r, hyphen, "a range goes from a character to a character", "\\-") : false;
    if (low > high)
        return wrong(r, at, "the range goes backwards", NULL);
    return add_range(r, low, high);
}

static bool read_bracket(Reader *r)
{
    const char *open = r->at++;
    const size_t first = r->code.n_ranges;
    const bool others = *r->at == '^';
    r->at += others;
    for (const char *begin = r->at; *r->at != ']' || r->at == begin;) {
        if (!*r->at)
            return wrong(r, open, "the [ is not closed", "\\[");
        if (!read_member(r, r->at == begin))
            return false;
    }
    r->at++;
    if (others)
        return turn_ranges(r, first);
    order_ranges(&r->code, first);
    return true;
}

/* A character, a set of them, or any: one state. */
static bool read_set(Reader *r)
{
    const size_t first = r->code.n_ranges;
    uint32_t character;
    bool good = true, is_set = true;
    if (*r->at == '[') {
        good = read_bracket(r);
    } else if (*r->at == '.') {
        r->at++;
        good = add_range(r, 0, PATTERN_CHARACTERS - 1);
    } else if (*r->at == '\\') {
        good = read_escape(r, &character, &is_set);
    } else {
        is_set = false;
        character = pattern_character(&r->at);
    }
    if (good && !is_set)
        good = add_range(r, character, character);
    return good && add_state(r, (PatternState){ PATTERN_SET, (int32_t)first, (int32_t)(r->code.n_ranges - first) });
}

/* ---- what repeats ---- */

/* Digits at *at; numbers that are too large for anything stay so. */
static bool read_number(const char **at, int64_t *number)
{
    enum { LARGE = 1 << 30 };
    const char *p = *at;
    *number = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        *number = *number < LARGE ? *number * 10 + (*p - '0') : LARGE;
    const bool any = p > *at;
    *at = p;
    return any;
}

/* {2}, {2,}, {,3} or {2,3}. */
static bool read_count(Reader *r, int64_t *least, int64_t *most)
{
    const char *p = r->at + 1;
    const bool first = read_number(&p, least);
    *most = *least;
    if (*p == ',') {
        p++;
        if (!read_number(&p, most))
            *most = -1;
    } else if (!first) {
        return wrong(r, r->at, "the { begins no count like {2} or {2,3}", "\\{");
    }
    if (*p != '}')
        return wrong(r, r->at, "the { begins no count like {2} or {2,3}", "\\{");
    if (*most >= 0 && *most < *least)
        return wrong(r, r->at, "the count goes backwards", NULL);
    r->at = p + 1;
    return true;
}

static bool repeats(char c)
{
    return c && strchr("*+?{", c);
}

/* The signs behind a piece. */
static bool read_repeats(Reader *r, size_t piece)
{
    while (repeats(*r->at)) {
        int64_t least = *r->at == '+', most = *r->at == '?' ? 1 : -1;
        const char *sign = r->at;
        if (*sign == '{' && !read_count(r, &least, &most))
            return false;
        if (!repeat(r, piece, least, most)) {
            r->fault->at = (size_t)(sign - r->text);
            return false;
        }
        r->at += *sign != '{';
    }
    return true;
}

/* ---- groups ---- */

static bool open_group(Reader *r)
{
    if (r->at[0] == '(' && r->at[1] == '?')
        return wrong(r, r->at, "(? begins nothing that is known: a group is ( )", NULL);
    if (!has_room(r, 1))
        return false;
    GROW(r->arena, r->groups, r->n_groups, r->cap_groups);
    r->groups[r->n_groups++] = (PatternGroup){ .begin = r->code.n, .branch = r->code.n, .at = r->at };
    return true;
}

/* What came since the group began, or since its last |, is one of its alternatives. */
static bool next_branch(Reader *r)
{
    PatternGroup *g = &r->groups[r->n_groups - 1];
    const size_t n = r->code.n - g->branch;
    if (!insert_state(r, g->branch, split(1, (ptrdiff_t)n + 2)) ||
        !add_state(r, (PatternState){ PATTERN_JUMP, (int32_t)g->jumps, 0 }))
        return false;
    g->jumps = g->branch = r->code.n;
    r->at++;
    return true;
}

/* Ends the group; answers where its code begins. */
static size_t end_group(Reader *r)
{
    const PatternGroup *g = &r->groups[--r->n_groups];
    for (size_t at = g->jumps; at;) {
        PatternState *jump = &r->code.states[at - 1];
        const int32_t to = (int32_t)(r->code.n - (at - 1));
        at = (size_t)jump->first;
        jump->first = to;
    }
    return g->begin;
}

static bool close_group(Reader *r)
{
    if (r->n_groups == 1)
        return wrong(r, r->at, "the ) closes nothing", "\\)");
    r->at++;
    return read_repeats(r, end_group(r));
}

/* ---- all of it ---- */

static bool read_anchor(Reader *r)
{
    const PatternKind kind = *r->at++ == '^' ? PATTERN_BEGIN : PATTERN_END;
    return add_state(r, (PatternState){ .kind = kind });
}

static bool read_piece(Reader *r)
{
    const size_t piece = r->code.n;
    switch (*r->at) {
    case '(':
        if (!open_group(r))
            return false;
        r->at++;
        return true;
    case ')':
        return close_group(r);
    case '|':
        return next_branch(r);
    case '^':
    case '$':
        return read_anchor(r);
    case '*':
    case '+':
    case '?':
    case '{':
        return wrong(r, r->at, "nothing stands before it that it could repeat",
                     *r->at == '*' ? "\\*, or .* for anything" : NULL);
    default:
        return read_set(r) && read_repeats(r, piece);
    }
}

TextPattern *pattern_read(Arena *a, const char *text, int64_t most, PatternFault *fault)
{
    enum { LARGEST = 1 << 24 };
    Reader r = { .arena = a, .text = text, .at = text, .most = LARGEST, .fault = fault };
    if (most < LARGEST)
        r.most = most > 0 ? (size_t)most : 0;
    *fault = (PatternFault){ 0 };
    if (!open_group(&r))
        return NULL;
    while (*r.at)
        if (!read_piece(&r))
            return NULL;
    if (r.n_groups > 1) {
        wrong(&r, r.groups[r.n_groups - 1].at, "the ( is not closed", "\\(");
        return NULL;
    }
    end_group(&r);
    return add_state(&r, (PatternState){ .kind = PATTERN_FOUND }) ? pattern_open(a, &r.code) : NULL;
}

const char *pattern_exact(Arena *a, const char *text)
{
    char *to = arena_alloc(a, 2 * strlen(text) + sizeof "^$"), *at = to;
    *at++ = '^';
    for (; *text; text++) {
        const bool is_read = strchr(" \t\r\n[]#=\"", *text) != NULL;
        if (!is_read && strchr("\\.()|*+?{}^$", *text))
            *at++ = '\\';
        *at++ = is_read ? '.' : *text;
    }
    *at++ = '$';
    *at = '\0';
    return to;
}
