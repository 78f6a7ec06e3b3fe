#include "api/make/amp_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "passes/recipe/scale_read.h"
#include "passes/step/footprint.h"

const char *amp_report_width(DType narrow)
{
    return narrow == F16 ? "fp16" : "bf16";
}

void amp_report_open(qcc_step *s)
{
    if (!s->recipe.precision.on)
        return;
    s->recipe.precision.ledger = NEW(&s->arena, AmpLedger);
    s->recipe.precision.ledger->arena = &s->arena;
}

/* ---- the summary ---- */

/* Whether products of the backward side compute narrow. */
static bool computes_backward(const AmpLedger *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].backward && l->list[i].role.class == AMP_T && l->list[i].computes)
            return true;
    return false;
}

/* "53 Conv, 1 MatMul", the most frequent first, of one side; whether there are any. */
static bool tell_products(Text *t, Arena *arena, const AmpLedger *l, bool backward)
{
    Map counts;
    bool any = false;
    map_open(&counts, arena);
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].backward == backward && l->list[i].role.class == AMP_T)
            map_put(&counts, l->list[i].title, NULL)->value.i++;
    for (;;) {
        MapEntry *most = NULL;
        for (size_t i = 0; i < counts.n; i++)
            if (counts.entries[i].value.i > (most ? most->value.i : 0))
                most = &counts.entries[i];
        if (!most)
            break;
        text_printf(t, "%s%" PRId64 " %s", any ? ", " : "", most->value.i, most->key);
        most->value.i = 0;
        any = true;
    }
    return any;
}

/* "53 Conv, 1 MatMul narrow"; "none narrow"; of a model whose products are of codes "none narrow but 5 MatMul backward". */
static void tell_narrow(Text *t, Arena *arena, const AmpLedger *l)
{
    Text behind;
    if (tell_products(t, arena, l, false)) {
        text_add(t, " narrow");
        return;
    }
    text_open(&behind, arena);
    text_add(t, "none narrow");
    if (computes_backward(l) && tell_products(&behind, arena, l, true))
        text_printf(t, " but %s backward", text_get(&behind));
}

/* "61 follow, 37 in f32 (12 FO, 25 F)": the other forward nodes, by how their results are stored. */
static void tell_others(Text *t, const AmpLedger *l)
{
    static const AmpClass order[] = { AMP_T, AMP_FO, AMP_F, AMP_EX, AMP_FI, AMP_X,
                                      AMP_S, AMP_E,  AMP_W, AMP_P,  AMP_PW, AMP_PM };
    size_t follow = 0, wide = 0, of[AMP_C + 1] = { 0 };
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        const AmpDecision *d = &l->list[i];
        if (d->backward || d->role.class == AMP_T)
            continue;
        follow += d->narrow;
        wide += d->gives && !d->narrow;
        of[d->role.class] += d->gives && !d->narrow;
    }
    text_printf(t, "; %zu follow, %zu in f32", follow, wide);
    for (size_t i = 0; i < COUNT(order); i++)
        if (of[order[i]]) {
            text_printf(t, "%s%zu %s", any ? ", " : " (", of[order[i]], amp_word(order[i]));
            any = true;
        }
    text_add(t, any ? ")" : "");
}

static void tell_scale(Text *t, Arena *arena, const qcc_step *s)
{
    const LossScale scale = recipe_loss_scale(&s->recipe);
    if (s->recipe.precision.on || scale.kind != SCALE_OFF)
        text_printf(t, "; loss scale %s", loss_scale_text(arena, &scale));
}

const char *amp_report_precision(Arena *arena, const qcc_step *s)
{
    const Precision *p = &s->recipe.precision;
    Text t;
    text_open(&t, arena);
    if (s->facts.silent)
        return "as the text of the step says";
    text_add(&t, p->on ? amp_report_width(p->narrow) : "f32");
    if (p->on && p->ledger) {
        text_add(&t, ": ");
        tell_narrow(&t, arena, p->ledger);
        tell_others(&t, p->ledger);
    }
    tell_scale(&t, arena, s);
    return text_get(&t);
}

const char *amp_report_casts(Arena *arena, const qcc_step *s)
{
    const AmpLedger *l = s->recipe.precision.ledger;
    const AmpCasts c = amp_casts_of(module_graph(s->module, "step"));
    if (!l)
        return arena_printf(arena, "casts %" PRId64, c.materialised);
    const int64_t left = c.all - c.written, folded = l->inserted > left ? l->inserted - left : 0;
    return arena_printf(arena, "casts %" PRId64 " (%" PRId64 " inserted, %" PRId64 " folded)", c.materialised,
                        l->inserted, folded);
}

typedef struct Silence {
    Diag *diag;
    Diag before;
} Silence;

static void speak_again(void *silence)
{
    const Silence *s = silence;
    *s->diag = s->before;
}

/* The same step in f32; null where it cannot be made. */
static qcc_step *compile_wide(const qcc_step *s)
{
    Cleanup cleanup;
    Silence silence = { &s->cx->diag, s->cx->diag };
    qcc_step *wide = NULL;
    cleanup_push(&s->cx->memory, &cleanup, speak_again, &silence);
    s->cx->diag.report = NULL;
    s->cx->diag.warnings_are_errors = false;
    const Status status = step_again(s, "--amp off", &wide);
    cleanup_drop(&cleanup);
    speak_again(&silence);
    return status == OK ? wide : NULL;
}

const char *amp_report_kept(Arena *arena, const qcc_step *s)
{
    qcc_step *wide = s->recipe.precision.ledger && s->facts.origin ? compile_wide(s) : NULL;
    if (!wide)
        return "";
    const uint64_t kept = footprint_kept(module_graph(s->module, "step"), arena),
                   instead = footprint_kept(module_graph(wide->module, "step"), arena);
    step_close(wide);
    return arena_printf(arena, ", kept for backward %s instead of %s", bytes_text(arena, kept),
                        bytes_text(arena, instead));
}

/* ---- why a node is as it is ---- */

/* Why a class that follows did not. */
static const char *why_wide(const Precision *p, const AmpDecision *d)
{
    const AmpClass c = d->role.class;
    const bool follows =
        c == AMP_E || c == AMP_S || c == AMP_W || c == AMP_FI || c == AMP_P || c == AMP_PW || c == AMP_PM;
    if (!follows || !d->gives || d->narrow || d->pin != AMP_PIN_NOTHING)
        return "";
    return c == AMP_W || p->walks ? ", follows what it reads" : ", wide costs less";
}

void amp_report_reason(Text *t, const Precision *p, const AmpDecision *d)
{
    const AmpRole *r = &d->role;
    text_printf(t, "class %s", amp_word(r->class));
    if (r->forced)
        text_printf(t, " by %s (%s on its card)", r->forced, amp_word(d->card));
    else if (r->reason != REASON_NONE && amp_keeps_wide(r->class))
        text_printf(t, " for %s", amp_reason(r->reason));
    if (d->pin != AMP_PIN_NOTHING)
        text_printf(t, ", %s", amp_pin_text(d->pin));
    text_add(t, why_wide(p, d));
}

const char *amp_report_stored(const Precision *p, const AmpDecision *d)
{
    return !d->gives ? "-" : d->narrow ? amp_report_width(p->narrow) : "f32";
}

const char *amp_report_computes(const Precision *p, const AmpDecision *d)
{
    return d->computes ? amp_report_width(p->narrow) : "f32";
}

/* ---- remarks, warnings, the fraction ---- */

static void remark_decisions(qcc_step *s)
{
    const Precision *p = &s->recipe.precision;
    for (size_t i = 0; i < p->ledger->n; i++) {
        const AmpDecision *d = &p->ledger->list[i];
        Place place = NOWHERE;
        Text t;
        place.where = d->where;
        text_open(&t, &s->cx->scratch);
        amp_report_reason(&t, p, d);
        remark(&s->cx->diag, "amp", place, "%s%s stored as %s, computes in %s: %s", d->title,
               d->backward ? " (backward)" : "", amp_report_stored(p, d), amp_report_computes(p, d), text_get(&t));
    }
}

/* Adds the forward nodes that could compute narrow and do not. */
static void name_wide(Message *m, const Precision *p)
{
    const AmpLedger *l = p->ledger;
    for (size_t i = 0; i < l->n; i++) {
        const AmpDecision *d = &l->list[i];
        Text t;
        if (d->backward || d->card != AMP_T || d->computes)
            continue;
        text_open(&t, m->diag->arena);
        amp_report_reason(&t, p, d);
        message_at(m, "%s %s: %s", d->where, d->title, text_get(&t));
    }
}

static Status warn_of_nothing(qcc_step *s, const AmpLedger *l)
{
    const AmpShare share = amp_share(l);
    if (share.narrow_nodes || computes_backward(l))
        return OK;
    Place place = NOWHERE;
    place.where = arena_printf(&s->cx->scratch, "--amp %s", amp_report_width(s->recipe.precision.narrow));
    Message *m = message_new(&s->cx->diag, SEVERITY_WARNING, OK, place, "nothing computes narrow: %s",
                             share.nodes ? "every operator that could is kept in f32"
                                         : "no operator of the model is of class T (products and convolutions)");
    name_wide(m, &s->recipe.precision);
    message_try(m, "--amp off");
    return message_send(m);
}

static Status warn_of_bytes(qcc_step *s, const AmpLedger *l)
{
    Arena *arena = &s->cx->scratch;
    if (l->cost <= l->wide_cost || !amp_share(l).narrow_nodes)
        return OK;
    Place place = NOWHERE;
    place.where = arena_printf(arena, "--amp %s", amp_report_width(s->recipe.precision.narrow));
    Message *m = message_new(&s->cx->diag, SEVERITY_WARNING, OK, place,
                             "moves more bytes than f32: %s instead of %s a step, casts included",
                             bytes_text(arena, (uint64_t)l->cost), bytes_text(arena, (uint64_t)l->wide_cost));
    message_try(m, "--amp off");
    return message_send(m);
}

/* The part of the work of class T that runs narrow. */
static double fraction_of(const AmpLedger *l)
{
    const AmpShare s = l ? amp_share(l) : (AmpShare){ 0 };
    if (s.all > 0)
        return s.narrow / s.all;
    return s.nodes ? (double)s.narrow_nodes / (double)s.nodes : 0;
}

static Status require_fraction(qcc_step *s, const AmpLedger *l, double wanted)
{
    const double have = fraction_of(l);
    if (have >= wanted)
        return OK;
    Arena *arena = &s->cx->scratch;
    Place place = NOWHERE;
    place.where = arena_printf(arena, "--require-amp-fraction %s", number_text(arena, wanted));
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, MISMATCH, place, "%s of the multiply-adds run narrow%s",
                             number_text(arena, floor(have * 1e4) / 1e4), l ? "" : ": --amp is off");
    if (l)
        name_wide(m, &s->recipe.precision);
    else
        message_try(m, "--amp bf16");
    return message_send(m);
}

Status amp_report_require(qcc_step *s, const CommandLine *line)
{
    const double wanted = option_real(line, OPT_require_amp, 0);
    if (!option_given(line, OPT_require_amp))
        return OK;
    if (wanted < 0 || wanted > 1)
        return fail_as(&s->cx->diag, USAGE, ON_COMMAND_LINE, "--require-amp-fraction %s: a fraction is between 0 and 1",
                       number_text(&s->cx->scratch, wanted));
    return require_fraction(s, s->recipe.precision.ledger, wanted);
}

Status amp_report_check(qcc_step *s, const CommandLine *line)
{
    const AmpLedger *l = s->recipe.precision.ledger;
    if (l)
        remark_decisions(s);
    TRY(amp_report_require(s, line));
    if (l) {
        TRY(warn_of_nothing(s, l));
        TRY(warn_of_bytes(s, l));
    }
    return OK;
}
