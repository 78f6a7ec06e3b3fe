#include "ir/tape.h"

#include <inttypes.h>

#include "base/number_text.h"

enum { BLOCK_ELEMENTS = 1024, BLOCK_MOST = 2048, MOST_ROWS = 64 };

int64_t tape_block_rows(const Tape *t)
{
    int64_t rows = 1;
    while (t->cut >= 0 && rows < MOST_ROWS && rows < t->rows && 2 * rows * t->length <= BLOCK_MOST)
        rows *= 2;
    return rows;
}

bool tape_has_channels(const Tape *t)
{
    return t->first > 0;
}

bool tape_has_pieces(const Tape *t)
{
    return tape_has_channels(t) && t->length > BLOCK_MOST;
}

int64_t tape_block_elements(const Tape *t)
{
    return t->cut < 0 || tape_has_pieces(t) ? BLOCK_ELEMENTS : tape_block_rows(t) * t->length;
}

int64_t tape_run_elements(const Tape *t)
{
    int64_t n = 1;
    for (int d = t->cut < 0 ? 0 : t->cut; d < t->space->rank; d++)
        n *= t->space->dims[d];
    return n;
}

void tape_phases(const Tape *t, int *phase)
{
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_STORE || s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL)
            continue;
        int before = 0;
        for (int k = 0; k < TAPE_OPERANDS; k++)
            if (s->word != TAPE_LOAD && s->in[k] != TAPE_NONE && phase[s->in[k]] > before)
                before = phase[s->in[k]];
        phase[s->out] = before + (s->word == TAPE_FOLD_ROW);
    }
}

/* Whether a load reads its argument element by element, as the space or its rows count them. */
static bool loads_in_place(const Tape *t, const TapeStep *load)
{
    const int64_t n = t->registers[load->out].per_row ? t->rows : t->rows * t->length;
    return type_elements(t->in[load->in[0]]) == n;
}

bool tape_may_lie_over(const Tape *t, int result, int argument)
{
    const Type *in = t->in[argument], *out = t->out[result];
    int stored = -1, loaded = -1;
    bool in_place = true, by_row = false;
    if (t->product != TAPE_NONE && argument != t->product)
        return false;
    if (type_elements(in) != type_elements(out) || dtype_bits(in->dtype) != dtype_bits(out->dtype))
        return false;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_LOAD && s->in[0] == argument) {
            loaded = i;
            in_place = in_place && loads_in_place(t, s);
            by_row = by_row || t->registers[s->out].per_row;
        }
        if (s->out == result && (s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL))
            return true; /* written when all blocks are done */
        if (s->out == result && s->word == TAPE_STORE && stored < 0)
            stored = i;
    }
    const bool rows = stored >= 0 && t->registers[t->steps[stored].in[0]].per_row;
    return stored >= 0 && in_place && loaded < stored && (loaded < 0 || by_row == rows || t->length == 1);
}

static void print_operands(Text *out, const TapeStep *s)
{
    for (int i = 0; i < TAPE_OPERANDS && s->in[i] != TAPE_NONE; i++)
        text_printf(out, "%s r%d", i ? "," : "", s->in[i]);
}

static void print_draw(Text *out, const TapeStep *s)
{
    static const char *const laws[] = { "keep", "uniform", "normal" };
    text_printf(out, "r%d = draw.%s.%s", s->out, laws[s->law], dtype_name(s->arithmetic));
    if (s->law == PHILOX_KEEP)
        text_printf(out, " (%.9g)", s->k[0]);
    text_printf(out, " of stream %" PRIu32, s->stream);
    if (s->own)
        text_printf(out, ", seed %" PRIu64, s->own >> 32);
    text_printf(out, "\n");
}

static void print_step(Text *out, const TapeStep *s, const OpTable *ops)
{
    const char *word =
        s->word == TAPE_ROW || s->word == TAPE_FOLD_ROW || s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL
            ? ops->defs[s->op]->name
            : "";
    switch (s->word) {
    case TAPE_LOAD:
        text_printf(out, "r%d = load.%s in%d\n", s->out, dtype_name(s->arithmetic), s->in[0]);
        return;
    case TAPE_FILL:
        text_printf(out, "r%d = fill.%s %.17g\n", s->out, dtype_name(s->arithmetic), s->k[0]);
        return;
    case TAPE_DRAW:
        print_draw(out, s);
        return;
    case TAPE_ROW:
        text_printf(out, "r%d = %s.%s", s->out, word, dtype_name(s->arithmetic));
        print_operands(out, s);
        if (s->k[0] != 0 || s->k[1] != 0)
            text_printf(out, " (%.9g, %.9g)", s->k[0], s->k[1]);
        text_printf(out, "\n");
        return;
    case TAPE_ROUND:
        text_printf(out, "r%d = round.%s.%s r%d to %s\n", s->out, dtype_name(s->arithmetic), dtype_name(s->to),
                    s->in[0], dtype_name(s->through));
        return;
    case TAPE_SPREAD:
        text_printf(out, "r%d = spread r%d\n", s->out, s->in[0]);
        return;
    case TAPE_HIT:
        text_printf(out, "r%d = hit.%s r%d\n", s->out, dtype_name(s->arithmetic), s->in[0]);
        return;
    case TAPE_FOLD_ROW:
        text_printf(out, "r%d = %s.%s r%d along rows\n", s->out, word, dtype_name(s->arithmetic), s->in[0]);
        return;
    case TAPE_PICK:
        text_printf(out, "r%d = pick.%s r%d, r%d along rows\n", s->out, dtype_name(s->arithmetic), s->in[0], s->in[1]);
        return;
    case TAPE_FOLD_COLUMN:
        text_printf(out, "out%d = %s.%s r%d of columns\n", s->out, word, dtype_name(s->arithmetic), s->in[0]);
        return;
    case TAPE_FOLD_ALL:
        text_printf(out, "out%d = %s.%s r%d of all\n", s->out, word, dtype_name(s->arithmetic), s->in[0]);
        return;
    case TAPE_STORE:
        text_printf(out, "out%d = r%d\n", s->out, s->in[0]);
        return;
    }
}

static void print_types(Text *out, const char *name, int n, const Type **types)
{
    for (int i = 0; i < n; i++) {
        text_printf(out, "%s%d: ", name, i);
        type_print(out, types[i]);
        text_printf(out, "\n");
    }
}

void tape_print(Text *out, const Tape *t, const OpTable *ops)
{
    if (t->cut < 0)
        text_printf(out, "tape (%s) over %" PRId64 " elements, %" PRId64 " a block, %d rooms\n", t->schedule, t->length,
                    tape_block_elements(t), t->n_rooms);
    else if (tape_has_channels(t))
        text_printf(
            out, "tape (%s) over %" PRId64 " channels of %" PRId64 " runs of %" PRId64 ", %" PRId64 " %s, %d rooms\n",
            t->schedule, t->rows, t->length / tape_run_elements(t), tape_run_elements(t),
            tape_has_pieces(t) ? tape_block_elements(t) : tape_block_rows(t),
            tape_has_pieces(t) ? "elements a piece" : "channels a block", t->n_rooms);
    else
        text_printf(out, "tape (%s) over %" PRId64 " rows of %" PRId64 ", %" PRId64 " rows a block, %d rooms\n",
                    t->schedule, t->rows, t->length, tape_block_rows(t), t->n_rooms);
    print_types(out, "in", t->n_in, t->in);
    if (t->product != TAPE_NONE)
        text_printf(out, "in%d is a product, block by block\n", t->product);
    print_types(out, "out", t->n_out, t->out);
    for (int i = 0; i < t->n_steps; i++)
        print_step(out, &t->steps[i], ops);
}
