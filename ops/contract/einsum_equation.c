/* Reading the equation of an einsum. */
#include <string.h>

#include "ops/contract/einsum.h"

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Capital letters come first, as in their codes. */
static uint8_t label_of(char c)
{
    return (uint8_t)(c <= 'Z' ? c - 'A' : c - 'a' + 26);
}

const char *equation_term(const char **text, int rank, int ellipsis, Labels *to, bool *has_ellipsis, Arena *arena)
{
    const char *p = *text;
    int letters = 0, dots = 0;
    for (; *p && *p != ',' && !(p[0] == '-' && p[1] == '>'); p++) {
        if (*p == ' ')
            continue;
        if (is_letter(*p)) {
            letters++;
        } else if (strncmp(p, "...", 3) == 0 && !dots) {
            dots++;
            p += 2;
        } else {
            return arena_printf(arena, "cannot read the equation at \"%s\"", p);
        }
    }
    const int more = rank < 0 ? ellipsis : rank - letters;
    if (rank >= 0 && (more < 0 || (more > 0 && !dots)))
        return arena_printf(arena, "names %d indices for an operand of %d dimensions", letters, rank);
    if (letters + (dots ? more : 0) > MAX_RANK)
        return arena_printf(arena, "has a term of more than %d indices", MAX_RANK);
    *has_ellipsis = dots;
    for (to->n = 0; *text != p; ++*text) {
        if (is_letter(**text))
            to->v[to->n++] = label_of(**text);
        if (**text != '.')
            continue;
        for (int i = 0; i < more; i++)
            to->v[to->n++] = (uint8_t)(ELLIPSIS_END - more + i);
        *text += 2;
    }
    return NULL;
}

/* What one operand says about extents: a 1 gives way to what others say. */
static const char *add_extents(Equation *q, const Labels *l, const Type *t, Arena *arena)
{
    for (int i = 0; i < l->n; i++) {
        int64_t *have = &q->extent[l->v[i]];
        const int64_t n = t->dims[i];
        for (int k = 0; k < i; k++)
            if (l->v[k] == l->v[i] && t->dims[k] != n && t->dims[k] >= 0 && n >= 0)
                return arena_printf(arena, "an operand has extents %" PRId64 " and %" PRId64 " for one index",
                                    t->dims[k], n);
        if (*have == -2 || *have == 1 || (*have < 0 && n > 1))
            *have = n;
        else if (n != *have && n != 1 && n >= 0 && *have >= 0)
            return arena_printf(arena, "an index has extents %" PRId64 " and %" PRId64, *have, n);
    }
    return NULL;
}

/* Without an arrow the result has the ellipsis and then every letter that is named once, in order. */
static void implied_output(Equation *q, int n_in)
{
    int count[LABELS] = { 0 };
    for (int i = 0; i < n_in; i++)
        for (int k = 0; k < q->in[i].n; k++)
            count[q->in[i].v[k]]++;
    q->out.n = 0;
    for (int i = 0; i < q->ellipsis; i++)
        q->out.v[q->out.n++] = (uint8_t)(ELLIPSIS_END - q->ellipsis + i);
    for (int l = 0; l < LETTERS && q->out.n < MAX_RANK; l++)
        if (count[l] == 1)
            q->out.v[q->out.n++] = (uint8_t)l;
}

static const char *check_output(const Equation *q, Arena *arena)
{
    bool seen[LABELS] = { false };
    int used = 0;
    for (int i = 0; i < q->out.n; i++) {
        if (q->extent[q->out.v[i]] == -2)
            return "has a result index that no operand has";
        if (seen[q->out.v[i]])
            return "has a result index twice";
        seen[q->out.v[i]] = true;
    }
    for (int l = 0; l < LABELS; l++)
        used += q->extent[l] != -2;
    return used > MAX_RANK ? arena_printf(arena, "has %d indices, more than %d", used, MAX_RANK) : NULL;
}

const char *equation_read(Equation *q, const char *text, int n_in, const Type *const *types, Arena *arena)
{
    const char *wrong, *p = text;
    bool dots;
    q->in = NEWS(arena, Labels, n_in);
    q->ellipsis = 0;
    for (int l = 0; l < LABELS; l++)
        q->extent[l] = -2;
    for (int i = 0; i < n_in; i++) {
        if (i && *p++ != ',')
            return arena_printf(arena, "has fewer terms than %d operands", n_in);
        const char *term = p;
        if ((wrong = equation_term(&p, types[i]->rank, 0, &q->in[i], &dots, arena)) ||
            (wrong = add_extents(q, &q->in[i], types[i], arena)))
            return wrong;
        int letters = 0;
        for (; term < p; term++)
            letters += is_letter(*term);
        if (dots && types[i]->rank - letters > q->ellipsis)
            q->ellipsis = types[i]->rank - letters;
    }
    if (*p == ',')
        return arena_printf(arena, "has more terms than %d operands", n_in);
    if (*p == '\0') {
        implied_output(q, n_in);
        return check_output(q, arena);
    }
    p += 2;
    if ((wrong = equation_term(&p, -1, q->ellipsis, &q->out, &dots, arena)))
        return wrong;
    return *p ? "has text behind its result" : check_output(q, arena);
}

bool labels_have(const Labels *l, uint8_t label)
{
    return l->n && memchr(l->v, label, (size_t)l->n);
}
