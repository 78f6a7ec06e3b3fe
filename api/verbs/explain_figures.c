/* explain of quantization in numbers: what quantizers make of weights, and of data where there are some. */
#include <inttypes.h>
#include <math.h>

#include "api/hall/words.h"
#include "api/session/figures.h"
#include "api/train/sensitivity.h"
#include "api/train/train.h"
#include "api/verbs/explain.h"

enum { COLUMN_BITS = 34, COLUMN_SCALE = 40, COLUMN_SQNR = 62, COLUMN_CLIPPED = 72, COLUMN_USED = 81 };

static const char *percent(Arena *arena, double share)
{
    return isnan(share) ? "-" : arena_printf(arena, "%.2g %%", 100 * share);
}

const char *figure_sqnr_text(Arena *arena, const QuantFigure *q)
{
    const double x = figure_sqnr(q);
    return !q->n || isnan(x) ? "-" : isinf(x) ? "exact" : arena_printf(arena, "%.1f dB", x);
}

const char *figure_scale_text(Arena *arena, const QuantFigure *q)
{
    if (!q->has_scale)
        return "-";
    if (q->n_scales == 1 && q->scale_least == q->scale_most)
        return arena_printf(arena, "%.3g", q->scale_most);
    return arena_printf(arena, "%.3g to %.3g", q->scale_least, q->scale_most);
}

/* Up to a column of a line that began at `from`; at least a space. */
static void column(Text *t, size_t from, size_t at)
{
    text_char(t, ' ');
    while (t->n - from < at)
        text_char(t, ' ');
}

static void tell_row(Text *t, Arena *arena, const char *const cells[6])
{
    static const size_t at[] = { 0, COLUMN_BITS, COLUMN_SCALE, COLUMN_SQNR, COLUMN_CLIPPED, COLUMN_USED };
    text_label(t, "");
    const size_t from = t->n;
    text_add(t, name_text(arena, cells[0]));
    for (int i = 1; i < 6; i++) {
        column(t, from, at[i]);
        text_add(t, cells[i]);
    }
    text_char(t, '\n');
}

static void tell_one(Text *t, Arena *arena, const QuantFigure *q)
{
    const char *const cells[6] = { q->value,
                                   arena_printf(arena, "%d", figure_bits(q)),
                                   figure_scale_text(arena, q),
                                   figure_sqnr_text(arena, q),
                                   percent(arena, figure_clipped(q)),
                                   q->n ? arena_printf(arena, "%.0f %%", 100 * figure_used(q)) : "-" };
    tell_row(t, arena, cells);
}

static void tell_what(Text *t, Command *c, const Figures *f)
{
    text_label(t, "figures");
    if (f->why)
        text_printf(t, "none: %s\n", f->why);
    else if (!f->samples)
        text_printf(t, "of weights, %s; --data for those of what is computed\n",
                    option_given(&c->line, OPT_checkpoint) ? "as the run left them" : "as the model has them");
    else
        text_printf(t, "of %s samples", grouped(&c->cx->scratch, f->samples));
    if (f->samples && f->observed)
        text_printf(t, "; %s", f->observed);
    text_add(t, f->samples && !f->why ? "\n" : "");
}

static void tell_figures(Text *t, Command *c, const Figures *f)
{
    static const char *const head[6] = { "value", "bits", "scale", "SQNR", "clipped", "codes used" };
    Arena *arena = &c->cx->scratch;
    const QuantFigure *lowest = figures_lowest(f);
    tell_what(t, c, f);
    if (f->n)
        tell_row(t, arena, head);
    for (size_t i = 0; i < f->n; i++)
        tell_one(t, arena, &f->list[i]);
    if (!lowest)
        return;
    text_label(t, "");
    text_printf(t, "lowest: %s, %s\n", name_text(arena, lowest->value), figure_sqnr_text(arena, lowest));
}

static LogValue number(double x)
{
    return isnan(x) ? logged_text(NULL) : logged_f32((float)x);
}

static void figure_records(Text *t, const Figures *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const QuantFigure *q = &f->list[i];
        log_record(t, "figure", { "value", logged_text(q->value) },
                   { "kind", logged_text(q->weight ? "weight" : "data") }, { "bits", logged_int(figure_bits(q)) },
                   { "scale_least", number(q->has_scale ? q->scale_least : (double)NAN) },
                   { "scale_most", number(q->has_scale ? q->scale_most : (double)NAN) },
                   { "scales", q->has_scale ? logged_int(q->n_scales) : logged_text(NULL) },
                   { "samples", q->weight || !q->n ? logged_text(NULL) : logged_int(f->samples) },
                   { "numbers", q->n ? logged_int(q->n) : logged_text(NULL) }, { "sqnr", number(figure_sqnr(q)) },
                   { "clipped", number(figure_clipped(q)) }, { "codes_used", number(figure_used(q)) });
    }
}

static Status refuse(Command *c, const char *option)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "%s: figures are of what is quantized, and nothing is", option);
    message_try(m, "--quant w8a8");
    return message_send(m);
}

Status explain_figures(Text *t, Command *c, qcc_step *s, bool records)
{
    Figures f = { 0 };
    const bool data = option_given(&c->line, OPT_data) && (!s || model_is_step(s->model)); /* else it may say sizes */
    if (s)
        TRY(train_figures(c, s, &f));
    if (!f.n && !f.why)
        return option_given(&c->line, OPT_checkpoint) ? refuse(c, "--checkpoint")
               : data && s                            ? refuse(c, "--data")
                                                      : explain_sensitivity(t, c, s, records);
    if (records)
        figure_records(t, &f);
    else
        tell_figures(t, c, &f);
    return explain_sensitivity(t, c, s, records);
}
