/* Patterns: what they find, against the C library's regular expressions; what is wrong with them; what they may cost. */
#include "base/pattern.h"

#include <locale.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/rng.h"
#include "unit/check.h"

typedef struct Lab {
    Memory memory;
    Arena arena;
    PatternFault fault;
} Lab;

static void open_lab(Lab *l)
{
    memory_open(&l->memory, NULL);
    arena_open(&l->arena, &l->memory);
}

static void close_lab(Lab *l)
{
    arena_close(&l->arena);
    assert_int_equal(l->memory.used, 0);
}

static TextPattern *read_pattern(Lab *l, const char *text)
{
    return pattern_read(&l->arena, text, LIMITS_DEFAULT.selector_states, &l->fault);
}

/* ---- what is found ---- */

typedef struct Case {
    const char *pattern, *text;
    bool found;
} Case;

/* What POSIX leaves open, what it says otherwise, and what the C library reads in its own way. */
static const Case cases[] = {
    { "", "", true },
    { "", "a", true },
    { "^$", "", true },
    { "$^", "", true },
    { "$^", "a", false },
    { "a^b", "a^b", false },
    { "a$b", "a$b", false },
    { "(^|x)a", "a", true },
    { "(^|x)a", "ba", false },
    { "(^|x)a", "bxa", true },
    { "(a|)b$", "cb", true },
    { "()", "x", true },
    { "a{0}b", "b", true },
    { "^a{,3}$", "aaa", true },
    { "^a{,3}$", "aaaa", false },
    { "^a{2,}$", "a", false },
    { "^a{2,}$", "aaaaa", true },
    { "^(ab|c){2,3}$", "abcab", true },
    { "^(ab|c){2,3}$", "abcabc", false },
    { "a**", "", true },
    { "^(a*)*$", "aaab", false },
    { "^(a|b)*?x", "abx", true }, /* in a search, what takes little finds the same */
    { "[]a]", "]", true },
    { "[^]a]", "]", false },
    { "[a-]", "-", true },
    { "[-a]", "-", true },
    { "[%--]", "+", true },
    { "[--/]", ".", true },
    { "[\\]]", "]", true },
    { "[\\w.-]+$", "a.b-c", true },
    { "[^\\W_]", "_", false },
    { "[^\\W_]", "_a", true },
    { "\\d", "d", false },
    { "\\d", "a7", true },
    { "\\D", "77", false },
    { "\\w\\s\\w", "a b", true },
    { "\\S", " \t", false },
    { "layer\\.1\\.", "layer.1.weight", true },
    { "layer\\.1\\.", "layer.10.weight", false },
    { "\\/\\-\\<", "/-<", true },
    { "}", "}", true },
    { "]", "]", true },
    { "^.$", "\xc3\xa9", true },
    { "^..$", "\xc3\xa9", false },
    { "^.$", "\xe2\x82\xac", true },
    { "^.$", "\xf0\x9f\x98\x80", true },
    { "^.$", "\xff", true },
    { "^..$", "\xff\xc3", true },
    { "^..$", "\xc0\xaf", true },
    { "^...$", "\xed\xa0\x80", true }, /* a surrogate is no character */
    { "^\xc3\xa9+$", "\xc3\xa9\xc3\xa9", true },
    { "^[\xc3\xa0-\xc3\xbf]$", "\xc3\xa9", true },
    { "^[\xc3\xa0-\xc3\xbf]$", "\xc3\x89", false },
    { "^[^a]$", "\xc3\xa9", true },
    { "[[:alpha:]]", "\xc3\xa9", false },
    { "\xff", "a\xff", true },
    { "^[[:word:]]+$", "a_1", true },
    { "^[[:cntrl:]]$", "\n", true },
    { "^[^a]$", "\n", true },
    { "^.$", "\n", true },
    { "(((a)))", "bab", true },
    { "($|a){2}a", "aa", false },
    { "($|a){2}a", "aaa", true },
    { "(a|b$){2,}", "cab", true },
    { "(^a|b){2}", "cab", false },
};

static void finds_what_is_meant(void **state)
{
    (void)state;
    Lab l;
    open_lab(&l);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TextPattern *p = read_pattern(&l, cases[i].pattern);
        check_that(p, "%s: %s", cases[i].pattern, l.fault.what);
        check_that(pattern_finds(p, cases[i].text) == cases[i].found, "%s in %s", cases[i].pattern, cases[i].text);
    }
    close_lab(&l);
}

/* ---- what is wrong ---- */

typedef struct Wrong {
    const char *pattern, *what;
    size_t at;
} Wrong;

static const Wrong wrongs[] = {
    { "(a", "the ( is not closed", 0 },
    { "a(b(c)", "the ( is not closed", 1 },
    { "a)", "the ) closes nothing", 1 },
    { "x[ab", "the [ is not closed", 1 },
    { "x[a-", "the [ is not closed", 1 },
    { "[]", "the [ is not closed", 0 },
    { "[", "the [ is not closed", 0 },
    { "[^", "the [ is not closed", 0 },
    { "[[:alpa:]]", "no class of characters is called so", 1 },
    { "[[:alpha", "no class of characters is called so", 1 },
    { "[[.a.]]", "there are no locales here, hence no such element", 1 },
    { "[[=a=]]", "there are no locales here, hence no such element", 1 },
    { "[z-a]", "the range goes backwards", 1 },
    { "[a-\\d]", "a range goes from a character to a character", 2 },
    { "[\\d-x]", "a range goes from a character to a character", 3 },
    { "[a-c-e]", "this - is neither a range nor first or last", 4 },
    { "*a", "nothing stands before it that it could repeat", 0 },
    { "a|*", "nothing stands before it that it could repeat", 2 },
    { "(+a)", "nothing stands before it that it could repeat", 1 },
    { "^*", "nothing stands before it that it could repeat", 1 },
    { "a$?", "nothing stands before it that it could repeat", 2 },
    { "{2}", "nothing stands before it that it could repeat", 0 },
    { "(?:a)", "(? begins nothing that is known: a group is ( )", 0 },
    { "a{", "the { begins no count like {2} or {2,3}", 1 },
    { "a{x}", "the { begins no count like {2} or {2,3}", 1 },
    { "a{2", "the { begins no count like {2} or {2,3}", 1 },
    { "a{}", "the { begins no count like {2} or {2,3}", 1 },
    { "a{3,2}", "the count goes backwards", 1 },
    { "a\\", "the \\ has nothing behind it", 1 },
    { "[a\\", "the \\ has nothing behind it", 2 },
    { "(a)\\1", "nothing refers back to a group", 3 },
    { "a\\b", "the \\ before this letter means nothing; \\d \\w \\s \\D \\W \\S are known", 1 },
};

static void says_what_is_wrong_and_where(void **state)
{
    (void)state;
    Lab l;
    open_lab(&l);
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        check_that(!read_pattern(&l, wrongs[i].pattern), "%s is read", wrongs[i].pattern);
        check_that(strcmp(l.fault.what, wrongs[i].what) == 0, "%s: %s", wrongs[i].pattern, l.fault.what);
        check_that(l.fault.at == wrongs[i].at, "%s: at %zu", wrongs[i].pattern, l.fault.at);
        assert_false(l.fault.is_large);
    }
    close_lab(&l);
}

/* ---- what it may cost ---- */

/* Patterns that stand for more than a machine has: refused before they are made, in less memory than the bound grants. */
static void a_bomb_is_refused(void **state)
{
    (void)state;
    static const char *const bombs[] = { "((((a{1,100}){1,100}){1,100}){1,100})", "a{2000000000}", "(a{99}){99,}{99}",
                                         "((((((((((a+){9}){9}){9}){9}){9}){9}){9}){9}){9})", "(a|b{9999}){2}" };
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        Lab l;
        open_lab(&l);
        assert_null(read_pattern(&l, bombs[i]));
        assert_true(l.fault.is_large);
        assert_in_range(l.memory.peak, 1, 4 << 20);
        close_lab(&l);
    }
}

/* Long texts of one sign: groups that open, ranges, alternatives, characters; each ends at the bound. */
static void length_is_bounded(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    static const char *const repeated[] = { "(", "|", "a", "[a]", "(a)*|", "^", "()", "a?" };
    char *text = malloc(LONG + 16);
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        Lab l;
        const size_t n = strlen(repeated[i]);
        text[0] = 0;
        for (size_t k = 0; k + n < LONG; k += n)
            memcpy(text + k, repeated[i], n + 1);
        open_lab(&l);
        TextPattern *p = read_pattern(&l, text);
        check_that(repeated[i][0] == '(' && repeated[i][1] == ')' ? p != NULL : !p && l.fault.is_large, "%s",
                   repeated[i]);
        assert_in_range(l.memory.peak, 1, 8 << 20);
        close_lab(&l);
    }
    Lab l;
    open_lab(&l);
    text[0] = '[';
    for (int k = 1; k < LONG; k++)
        text[k] = (char)('0' + k % 2 * 5);
    text[LONG] = ']', text[LONG + 1] = 0;
    assert_null(read_pattern(&l, text));
    assert_true(l.fault.is_large);
    close_lab(&l);
    free(text);
}

/* A pattern whose sets of states are all different: what it remembers of them is forgotten, and memory does not grow. */
static void memory_does_not_grow_with_texts(void **state)
{
    (void)state;
    Lab l;
    Rng rng = { 3 };
    char text[4097];
    open_lab(&l);
    TextPattern *p = read_pattern(&l, "x|a[ab]{40}c|(ab?){0,300}(ba){200}c");
    assert_non_null(p);
    const uint64_t used = l.memory.used;
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 4096; k++)
            text[k] = (char)('a' + rng_below(&rng, 2));
        text[4096] = 0;
        assert_false(pattern_finds(p, text));
        memcpy(text + 4000, "c", 2);
        bool at = text[4000 - 41] == 'a', pairs = true;
        for (int k = 3600; k < 4000; k++)
            pairs &= text[k] == (k % 2 ? 'a' : 'b');
        assert_true(pattern_finds(p, text) == (at || pairs));
    }
    assert_int_equal(l.memory.used, used);
    close_lab(&l);
}

/* ---- against the C library ---- */

enum { MOST_TEXT = 4000 };

typedef struct Draft {
    char text[MOST_TEXT];
    size_t n;
    Rng *rng;
} Draft;

static void put(Draft *d, const char *text)
{
    const size_t n = strlen(text);
    if (d->n + n + 1 < MOST_TEXT) {
        memcpy(d->text + d->n, text, n + 1);
        d->n += n;
    }
}

static const char *any_of(Draft *d, const char *const *words, int64_t n)
{
    return words[rng_below(d->rng, n)];
}

static void draw_counts(Draft *d, int64_t times)
{
    static const char *const counts[] = { "*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}", "{,2}", "{0,0}" };
    for (; times > 0; times--)
        put(d, any_of(d, counts, sizeof counts / sizeof *counts));
}

static void draw_pattern(Draft *d, int depth, bool anchors);

static void draw_piece(Draft *d, int depth, bool anchors)
{
    static const char *const atoms[] = { "a",
                                         "b",
                                         "c",
                                         "a",
                                         "b",
                                         ".",
                                         "[ab]",
                                         "[^a]",
                                         "[]a]",
                                         "[^]b]",
                                         "[a-]",
                                         "[-b]",
                                         "[a-c]",
                                         "[[:alpha:]]",
                                         "\\.",
                                         "\\*",
                                         "[.]",
                                         "[*b^]",
                                         "[%--]",
                                         "\\[",
                                         "]",
                                         "}",
                                         "[[:punct:]c]",
                                         "()",
                                         "[a\t]",
                                         "[b-c.]",
                                         "[[:space:]]",
                                         "[^[:upper:]a]" };
    const int64_t times = rng_below(d->rng, 5) / 3;
    if (depth > 0 && rng_below(d->rng, 3) == 0) {
        put(d, "(");
        draw_pattern(d, depth - 1, anchors && !times);
        put(d, ")");
    } else {
        put(d, any_of(d, atoms, sizeof atoms / sizeof *atoms));
    }
    draw_counts(d, times);
}

/* Expressions that both read alike; letters are few so that texts hold what is sought.  Nothing that repeats has an
 * anchor: of those the C library makes wrong copies, as ($|a){2}a, which it finds in aa. */
static void draw_pattern(Draft *d, int depth, bool anchors)
{
    const int64_t branches = 1 + (rng_below(d->rng, 4) == 0) + (rng_below(d->rng, 8) == 0);
    for (int64_t k = 0; k < branches; k++) {
        put(d, k ? "|" : "");
        for (int64_t i = rng_below(d->rng, 4); i > 0; i--)
            if (anchors && rng_below(d->rng, 9) == 0)
                put(d, rng_below(d->rng, 2) ? "^" : "$");
            else
                draw_piece(d, depth, anchors);
    }
}

/* Without newlines: the C library finds $ before one although it was not asked to. */
static void draw_text(Rng *rng, char *text)
{
    static const char letters[] = "aabbccd.]-*^$[\t AB";
    const int64_t n = rng_below(rng, 12);
    for (int64_t i = 0; i < n; i++)
        text[i] = letters[rng_below(rng, sizeof letters - 1)];
    text[n] = 0;
}

static void compare(Lab *l, const char *pattern, Rng *rng, int64_t *found, int64_t *missed)
{
    enum { TEXTS = 12 };
    regex_t regex;
    char text[16];
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return;
    const ArenaMark mark = arena_mark(&l->arena);
    TextPattern *p = read_pattern(l, pattern);
    check_that(p, "%s: %s", pattern, l->fault.what);
    for (int i = 0; i < TEXTS; i++) {
        draw_text(rng, text);
        const bool ours = pattern_finds(p, text), theirs = regexec(&regex, text, 0, NULL, 0) == 0;
        check_that(ours == theirs, "'%s' in '%s': found %d, by the C library %d", pattern, text, ours, theirs);
        *(ours ? found : missed) += 1;
    }
    arena_reset(&l->arena, mark);
    regfree(&regex);
}

static void agrees_with_the_c_library(void **state)
{
    (void)state;
    enum { PATTERNS = 30000 };
    Lab l;
    Rng rng = { 17 };
    int64_t found = 0, missed = 0;
    open_lab(&l);
    for (int i = 0; i < PATTERNS; i++) {
        Draft d = { .rng = &rng };
        draw_pattern(&d, 3, true);
        compare(&l, d.text, &rng, &found, &missed);
    }
    print_message("%lld found, %lld not\n", (long long)found, (long long)missed);
    assert_true(found > 50000 && missed > 50000);
    close_lab(&l);
}

/* Any signs in any order: what we read, the C library reads the same way, but for what is said in base/pattern.h. */
static void agrees_on_any_signs(void **state)
{
    (void)state;
    enum { PATTERNS = 200000 };
    static const char signs[] = "ab()|*+?{}[]^$.-,12:\\";
    Lab l;
    Rng rng = { 23 };
    int64_t read = 0, refused = 0, found = 0, missed = 0;
    open_lab(&l);
    for (int i = 0; i < PATTERNS; i++) {
        char pattern[12];
        const int64_t n = rng_below(&rng, 10);
        for (int64_t k = 0; k < n; k++)
            pattern[k] = signs[rng_below(&rng, sizeof signs - 1)];
        pattern[n] = 0;
        const ArenaMark mark = arena_mark(&l.arena);
        TextPattern *p = read_pattern(&l, pattern);
        arena_reset(&l.arena, mark);
        refused += !p;
        const char *bracket = strchr(pattern, '['), *escape = bracket ? strchr(bracket, '\\') : NULL;
        if (!p || escape)
            continue;
        regex_t regex;
        check_that(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0, "the C library refuses '%s'", pattern);
        regfree(&regex);
        compare(&l, pattern, &rng, &found, &missed);
        read++;
    }
    print_message("%lld read, %lld refused; %lld found, %lld not\n", (long long)read, (long long)refused,
                  (long long)found, (long long)missed);
    assert_true(read > 20000);
    close_lab(&l);
}

/* A text is found by its own expression, and nothing else is: neither what begins or ends so nor what differs in a sign. */
static void finds_one_text_exactly(void **state)
{
    (void)state;
    enum { TEXTS = 20000, LONGEST = 10 };
    static const char signs[] = "ab()|*+?{}[]^$.-,12:\\/#= \"\t";
    static const char any[] = "[]#= \"\t";
    Lab l;
    Rng rng = { 29 };
    open_lab(&l);
    for (int i = 0; i < TEXTS; i++) {
        char text[LONGEST + 2], other[LONGEST + 2];
        const int64_t n = 1 + rng_below(&rng, LONGEST - 1), at = rng_below(&rng, n);
        for (int64_t k = 0; k < n; k++)
            text[k] = signs[rng_below(&rng, sizeof signs - 1)];
        text[n] = 0;
        const ArenaMark mark = arena_mark(&l.arena);
        const char *exact = pattern_exact(&l.arena, text);
        TextPattern *p = read_pattern(&l, exact);
        check_that(p && pattern_finds(p, text), "'%s' does not find '%s'", exact, text);
        check_that(!strpbrk(exact, " \t#=\""), "'%s' is not one word", exact);
        memcpy(other, text, (size_t)n);
        memcpy(other + n, "a", sizeof "a");
        check_that(!pattern_finds(p, other), "'%s' finds '%s'", exact, other);
        check_that(!pattern_finds(p, text + 1), "'%s' finds '%s'", exact, text + 1);
        memcpy(other, text, (size_t)n + 1);
        other[at] = text[at] == 'x' ? 'y' : 'x';
        check_that(strchr(any, text[at]) || !pattern_finds(p, other), "'%s' finds '%s'", exact, other);
        arena_reset(&l.arena, mark);
    }
    close_lab(&l);
}

int main(void)
{
    setlocale(LC_ALL, "C");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_meant),
        cmocka_unit_test(says_what_is_wrong_and_where),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(length_is_bounded),
        cmocka_unit_test(memory_does_not_grow_with_texts),
        cmocka_unit_test(agrees_with_the_c_library),
        cmocka_unit_test(agrees_on_any_signs),
        cmocka_unit_test(finds_one_text_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
