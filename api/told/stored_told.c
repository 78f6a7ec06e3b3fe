/* What explain says of weights that are kept in few bits: their form, their size, and what a run will tell of them. */
#include "api/told/stored_told.h"

#include <inttypes.h>

#include "api/hall/words.h"
#include "passes/recipe/quantizer.h"
#include "runtime/log/log.h"

typedef struct StoredWeight {
    const Node *state, *scale, *zero; /* null: none */
    uint64_t bytes;                   /* with its scales */
    const char *rounding, *begins;    /* "by chance" */
} StoredWeight;

static bool is_kept_in_few_bits(const Node *n)
{
    return n->op == OP_state && n->flags & NODE_TRAINED && type_known(n->type) &&
           (node_stored(n) || n->type->dtype == BF16);
}

static uint64_t bytes_of(const Node *n)
{
    return n ? ((uint64_t)type_elements(n->type) * (uint64_t)dtype_bits(n->type->dtype) + 7) / 8 : 0;
}

static const char by_chance[] = "by chance", to_the_nearest[] = "to the nearest";

/* How its words say that it is rounded in updates, and from floats; what the model has in bf16 is rounded to the
 * nearest. */
static Status rounding_of(const qcc_step *s, const Node *n, const char **rounding, const char **begins)
{
    Quantizer q;
    const char *words = node_stored(n);
    *rounding = *begins = to_the_nearest;
    if (!words)
        return OK;
    TRY(quantizer_read_one(&q, OPERAND_W, node_place(n), "stored", words, &s->cx->scratch, &s->cx->diag));
    if (quantizer_says(&q, QUANT_ROUNDING, ROUNDING_SR))
        *rounding = by_chance;
    if (quantizer_says(&q, QUANT_FIRST, FIRST_SR))
        *begins = by_chance;
    return OK;
}

static Status find(const qcc_step *s, StoredWeight **list, size_t *n)
{
    const Graph *g = module_graph(s->module, "step");
    *list = NEWS(&s->cx->scratch, StoredWeight, g->n_inputs + 1);
    *n = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *state = g->inputs[i];
        if (!is_kept_in_few_bits(state))
            continue;
        StoredWeight *w = &(*list)[(*n)++];
        *w = (StoredWeight){ state, stored_scale(g, state->name), stored_zero(g, state->name), 0, NULL, NULL };
        w->bytes = bytes_of(state) + bytes_of(w->scale) + bytes_of(w->zero);
        TRY(rounding_of(s, state, &w->rounding, &w->begins));
    }
    return OK;
}

/* "64 scales, each of 256": how many codes share one. */
static const char *scales_text(Arena *arena, const StoredWeight *w)
{
    if (!w->scale)
        return "no scales";
    const int64_t n = type_elements(w->scale->type), each = n ? type_elements(w->state->type) / n : 0;
    return arena_printf(arena, "%s scale%s%s of %s", grouped(arena, n), n == 1 ? "" : "s",
                        w->zero ? n == 1 ? " and zero point" : " and zero points" : "", grouped(arena, each));
}

/* What a run tells of them beside what it looks at. */
static const char *counting_text(const qcc_step *s)
{
    if (s->recipe.counted)
        return "lost updates are counted in every step";
    return model_is_step(s->model) ? "this step counts no lost updates   --telemetry on where it is compiled"
                                   : "lost updates where -v, --log or --tensorboard tells them   --telemetry on|off";
}

static void tell(Text *t, const qcc_step *s, const StoredWeight *list, size_t n)
{
    uint64_t bytes = 0, floats = 0;
    Arena *arena = &s->cx->scratch;
    for (size_t i = 0; i < n; i++) {
        bytes += list[i].bytes;
        floats += 4 * (uint64_t)type_elements(list[i].state->type);
    }
    text_label(t, "low bits");
    text_printf(t, "%zu weight%s in few bits, %s with scales; in f32 %s\n", n, n == 1 ? "" : "s",
                bytes_text(arena, bytes), bytes_text(arena, floats));
    for (size_t i = 0; i < n; i++) {
        const StoredWeight *w = &list[i];
        text_label(t, "");
        text_printf(t, "%s %s, %s, rounded %s%s, %s\n", name_text(arena, w->state->name),
                    type_text(arena, w->state->type), scales_text(arena, w), w->rounding,
                    w->begins == by_chance ? ", from floats by chance" : "", bytes_text(arena, w->bytes));
    }
    text_label(t, "telemetry");
    text_printf(t, "codes that change, codes at the ends, scales that move; %s\n", counting_text(s));
}

static void records(Text *t, const qcc_step *s, const StoredWeight *list, size_t n)
{
    Arena *arena = &s->cx->scratch;
    for (size_t i = 0; i < n; i++) {
        const StoredWeight *w = &list[i];
        log_record(t, "stored", { "name", logged_text(w->state->name) },
                   { "type", logged_text(type_text(arena, w->state->type)) },
                   { "scales", w->scale ? logged_int(type_elements(w->scale->type)) : logged_text(NULL) },
                   { "zeros", logged_flag(w->zero != NULL) }, { "rounding", logged_text(w->rounding) },
                   { "begins", logged_text(w->begins) }, { "bytes", logged_int((int64_t)w->bytes) },
                   { "counted", logged_flag(s->recipe.counted) });
    }
}

Status step_stored_told(Text *t, const qcc_step *s, bool as_records)
{
    size_t n;
    StoredWeight *list;
    TRY(find(s, &list, &n));
    if (!n)
        return OK;
    if (as_records)
        records(t, s, list, n);
    else
        tell(t, s, list, n);
    return OK;
}
