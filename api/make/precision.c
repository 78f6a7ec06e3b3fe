/* Options of mixed precision, as a recipe; tables as notes of a step, and back. */
#include <inttypes.h>
#include <string.h>

#include "api/make/recipe.h"
#include "base/hash.h"
#include "ir/store/json_text.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"
#include "passes/recipe/scale_read.h"

/* ---- tables ---- */

static Status no_table(qcc_step *s, const char *file)
{
    const char *names[MOST_SHIPPED_TABLES];
    const size_t n = amp_tables_shipped(names);
    const char *near = str_nearest(file, names, n);
    Place place = NOWHERE;
    place.where = "--amp-table";
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, place, "there is no file %s", file);
    for (size_t i = 0; i < n; i++)
        if (!near || near == names[i])
            message_try(m, "--amp-table %s", names[i]);
    return message_send(m);
}

/* The text behind --amp-table: the one of the step that is made again, a file, or a table that is always at hand. */
static Status table_text(qcc_step *s, const char *file, const char **text)
{
    Str bytes;
    for (size_t i = 0; i < s->facts.n_tables; i++)
        if (strcmp(s->facts.tables[i].file, file) == 0) {
            *text = s->facts.tables[i].text;
            return OK;
        }
    if (s->facts.recorded || !file_exists(file)) {
        *text = amp_table_shipped(file);
        if (s->facts.recorded && !*text)
            return fail(&s->cx->diag, (Place){ .where = "--amp-table", .byte = -1 },
                        "the step does not hold the table %s, and names no file to be opened", file);
        return *text ? OK : no_table(s, file);
    }
    TRY(file_read(&s->arena, &s->cx->diag, file, s->cx->limits.string_bytes, "string_bytes", &bytes));
    if (!str_is_utf8(bytes))
        return fail_as(&s->cx->diag, USAGE, (Place){ .file = file, .byte = -1 }, "is no text");
    *text = bytes.p;
    return OK;
}

static Status read_tables(qcc_step *s, const CommandLine *line)
{
    Precision *p = &s->recipe.precision;
    const int n = option_given(line, OPT_amp_table);
    const AmpTable **tables = NEWS(&s->arena, const AmpTable *, n + 1);
    TableText *texts = NEWS(&s->arena, TableText, n + 1);
    const char *file;
    size_t i = 0;
    for (size_t at = 0; (file = option_next(line, OPT_amp_table, &at)); i++) {
        texts[i].file = arena_string(&s->arena, file);
        TRY(table_text(s, file, &texts[i].text));
        TRY(amp_table_read(&tables[i], file, texts[i].text, s->ir->ops, &s->arena, &s->cx->diag));
    }
    p->tables = tables;
    s->facts.tables = texts;
    p->n_tables = s->facts.n_tables = i;
    return OK;
}

const char *precision_table_identity(const qcc_step *s, const char *file)
{
    for (size_t i = 0; i < s->facts.n_tables; i++) {
        const TableText *t = &s->facts.tables[i];
        if (strcmp(t->file, file) == 0)
            return arena_printf((Arena *)&s->arena, "%016" PRIx64, hash64(t->text, strlen(t->text), 0));
    }
    return file;
}

const char *precision_tables_text(qcc_step *s)
{
    Text t;
    text_open(&t, &s->cx->scratch);
    for (size_t i = 0; i < s->facts.n_tables; i++) {
        const TableText *x = &s->facts.tables[i];
        text_add(&t, i ? ",[" : "[[");
        text_json(&t, x->file, strlen(x->file));
        text_char(&t, ',');
        text_json(&t, x->text, strlen(x->text));
        text_char(&t, ']');
    }
    text_char(&t, ']');
    return s->facts.n_tables ? text_get(&t) : NULL;
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

static bool read_table_texts(qcc_step *s, json_t *all)
{
    const size_t n = json_array_size(all);
    TableText *list = NEWS(&s->arena, TableText, n + 1);
    for (size_t i = 0; i < n; i++) {
        json_t *pair = json_array_get(all, i);
        const char *file = json_string_value(json_array_get(pair, 0)),
                   *text = json_string_value(json_array_get(pair, 1));
        if (!file || !text)
            return false;
        list[i] = (TableText){ arena_string(&s->arena, file), arena_string(&s->arena, text) };
    }
    s->facts.tables = list;
    s->facts.n_tables = n;
    return json_is_array(all);
}

Status precision_tables_read(qcc_step *s, const char *text)
{
    Cleanup cleanup;
    json_error_t error;
    json_t *all = text ? json_text(&s->cx->memory, text, strlen(text), 0, &error) : NULL;
    if (!text)
        return OK;
    if (!all)
        return fail(&s->cx->diag, NOWHERE, "metadata qcc.amp_table is no list of tables");
    cleanup_push(&s->cx->memory, &cleanup, drop_json, all);
    const bool good = read_table_texts(s, all);
    cleanup_drop(&cleanup);
    json_decref(all);
    return good ? OK : fail(&s->cx->diag, NOWHERE, "metadata qcc.amp_table is no list of tables");
}

/* ---- all of it ---- */

static bool is_of_quant(Option o)
{
    return o == OPT_quant || o == OPT_quant_op || o == OPT_quant_table || o == OPT_freeze_ranges;
}

/* Options that say something of --amp without it: what was meant to happen does not. */
static Status warn_of_idle(qcc_step *s, const CommandLine *line)
{
    for (int o = 0; o < OPT_COUNT && !option_given(line, OPT_amp); o++) {
        const OptionSpec *spec = &option_specs[o];
        if (spec->topic == TOPIC_QUANT && spec->keep == KEEP_IDENTITY && !is_of_quant((Option)o) &&
            option_given(line, (Option)o))
            TRY(warn(&s->cx->diag, (Place){ .where = spec->name, .byte = -1 },
                     "has no effect without --amp bf16 or --amp fp16"));
    }
    return OK;
}

static Status warn_of_idle_quant(qcc_step *s, const CommandLine *line)
{
    static const Option idle[] = { OPT_quant_op, OPT_freeze_ranges };
    for (size_t i = 0; i < COUNT(idle) && !s->recipe.quantization.spec; i++)
        if (option_given(line, idle[i]))
            TRY(warn(&s->cx->diag, (Place){ .where = option_specs[idle[i]].name, .byte = -1 },
                     "has no effect without --quant"));
    return OK;
}

static Status warn_of_scale(qcc_step *s, const CommandLine *line)
{
    const Place place = { .where = option_specs[OPT_loss_scale].name, .byte = -1 };
    if (!option_given(line, OPT_loss_scale) || !loss_scale_is_idle(&s->recipe))
        return OK;
    return warn(&s->cx->diag, place,
                "changes nothing here: gradients of f32 and bf16 do not underflow (it helps --amp fp16)");
}

Status precision_read(qcc_step *s, const CommandLine *line)
{
    TRY(warn_of_idle(s, line));
    TRY(warn_of_idle_quant(s, line));
    TRY(warn_of_scale(s, line));
    return read_tables(s, line);
}
