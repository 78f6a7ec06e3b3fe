#include "api/make/table_texts.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "ir/store/json_text.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"
#include "passes/quant/shipped.h"
#include "passes/quant/table.h"
#include "api/model/evaluate.h"
#include "passes/target/datapath.h"

enum {
    MOST_NAMES = (int)MOST_SHIPPED_TABLES > (int)MOST_SHIPPED_QUANT_TABLES ? (int)MOST_SHIPPED_TABLES
                                                                           : (int)MOST_SHIPPED_QUANT_TABLES
};

/* No machine is always at hand. */
static const char *no_datapath(const char *name)
{
    (void)name;
    return NULL;
}

static size_t no_datapaths(const char **names)
{
    (void)names;
    return 0;
}

static const struct Form {
    Option option;
    const char *note;
    const char *(*shipped)(const char *name);
    size_t (*names)(const char **names);
} forms[TABLE_KINDS] = {
    [TABLES_OF_CLASSES] = { OPT_amp_table, "qcc.amp_table", amp_table_shipped, amp_tables_shipped },
    [TABLES_OF_QUANTIZERS] = { OPT_quant_table, "qcc.quant_table", quant_table_shipped, quant_tables_shipped },
    [TEXTS_OF_DATAPATHS] = { OPT_datapath, "qcc.datapath", no_datapath, no_datapaths },
};

/* ---- from a line ---- */

static Place place_of(const struct Form *f)
{
    return (Place){ .where = option_specs[f->option].name, .byte = -1 };
}

static Status no_table(qcc_step *s, const struct Form *f, const char *file)
{
    const char *names[MOST_NAMES];
    const size_t n = f->names(names);
    const char *near = n ? str_nearest(file, names, n) : NULL;
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, place_of(f), "there is no file %s", file);
    for (size_t i = 0; i < n; i++)
        if (!near || near == names[i])
            message_try(m, "%s %s", option_specs[f->option].name, names[i]);
    return message_send(m);
}

/* The text behind an option: the one of the step that is made again, a file, or a table that is always at hand. */
static Status table_text(qcc_step *s, TableKind kind, const char *file, const char **text)
{
    const struct Form *f = &forms[kind];
    const TableTexts *known = &s->facts.tables[kind];
    Str bytes;
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->list[i].file, file) == 0) {
            *text = known->list[i].text;
            return OK;
        }
    if (s->facts.recorded || !file_exists(file)) {
        *text = f->shipped(file);
        if (s->facts.recorded && !*text)
            return fail(&s->cx->diag, place_of(f),
                        "the step does not hold the table %s, and names no file to be opened", file);
        return *text ? OK : no_table(s, f, file);
    }
    TRY(file_read(&s->arena, &s->cx->diag, file, s->cx->limits.string_bytes, "string_bytes", &bytes));
    if (!str_is_utf8(bytes))
        return fail_as(&s->cx->diag, USAGE, (Place){ .file = file, .byte = -1 }, "is no text");
    *text = bytes.p;
    return OK;
}

static Status read_texts(qcc_step *s, const CommandLine *line, TableKind kind)
{
    const Option o = forms[kind].option;
    TableText *texts = NEWS(&s->arena, TableText, option_given(line, o) + 1);
    const char *file;
    size_t n = 0;
    for (size_t at = 0; (file = option_next(line, o, &at)); n++) {
        texts[n].file = arena_string(&s->arena, file);
        TRY(table_text(s, kind, file, &texts[n].text));
    }
    s->facts.tables[kind] = (TableTexts){ texts, n };
    return OK;
}

Status step_read_datapath(qcc_step *s, const CommandLine *line)
{
    const TableTexts *all = &s->facts.tables[TEXTS_OF_DATAPATHS];
    TRY(read_texts(s, line, TEXTS_OF_DATAPATHS));
    if (!all->n)
        return OK;
    if (option_given(line, OPT_for_))
        return fail_as(&s->cx->diag, USAGE, place_of(&forms[TEXTS_OF_DATAPATHS]),
                       "a machine of one's own is whom the model is for: --for %s is another",
                       option_text(line, OPT_for_));
    return datapath_read(&s->recipe.quantization.own_target, all->list[0].file, all->list[0].text, model_has_operator,
                         s->ir->ops, &s->arena, &s->cx->diag);
}

Status step_read_tables(qcc_step *s, const CommandLine *line)
{
    const TableTexts *all = s->facts.tables;
    for (int k = 0; k < TEXTS_OF_DATAPATHS; k++)
        TRY(read_texts(s, line, (TableKind)k));
    const TableTexts classes = all[TABLES_OF_CLASSES], quantizers = all[TABLES_OF_QUANTIZERS];
    const AmpTable **amp = NEWS(&s->arena, const AmpTable *, classes.n + 1);
    const QuantTable **quant = NEWS(&s->arena, const QuantTable *, quantizers.n + 1);
    for (size_t i = 0; i < classes.n; i++)
        TRY(amp_table_read(&amp[i], classes.list[i].file, classes.list[i].text, s->ir->ops, &s->arena, &s->cx->diag));
    for (size_t i = 0; i < quantizers.n; i++)
        TRY(quant_table_read(&quant[i], quantizers.list[i].file, quantizers.list[i].text, s->ir->ops, &s->arena,
                             &s->cx->diag));
    s->recipe.precision.tables = amp;
    s->recipe.precision.n_tables = classes.n;
    s->recipe.quantization.tables = quant;
    s->recipe.quantization.n_tables = quantizers.n;
    return OK;
}

const char *step_table_identity(const qcc_step *s, Option option, const char *value)
{
    for (int k = 0; k < TABLE_KINDS; k++)
        for (size_t i = 0; forms[k].option == option && i < s->facts.tables[k].n; i++) {
            const TableText *t = &s->facts.tables[k].list[i];
            if (strcmp(t->file, value) == 0)
                return arena_printf((Arena *)&s->arena, "%016" PRIx64, hash64(t->text, strlen(t->text), 0));
        }
    return value;
}

/* ---- notes ---- */

static const char *tables_text(qcc_step *s, const TableTexts *all)
{
    Text t;
    text_open(&t, &s->cx->scratch);
    for (size_t i = 0; i < all->n; i++) {
        const TableText *x = &all->list[i];
        text_add(&t, i ? ",[" : "[[");
        text_json(&t, x->file, strlen(x->file));
        text_char(&t, ',');
        text_json(&t, x->text, strlen(x->text));
        text_char(&t, ']');
    }
    text_char(&t, ']');
    return text_get(&t);
}

void step_tables_to_notes(qcc_step *s, StepNote *list, size_t *n)
{
    for (int k = 0; k < TABLE_KINDS; k++)
        if (s->facts.tables[k].n)
            list[(*n)++] = (StepNote){ forms[k].note, tables_text(s, &s->facts.tables[k]) };
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

static bool read_pairs(qcc_step *s, json_t *all, TableTexts *to)
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
    *to = (TableTexts){ list, n };
    return json_is_array(all);
}

static Status read_note(qcc_step *s, TableKind kind, const char *text)
{
    Cleanup cleanup;
    json_error_t error;
    json_t *all = json_text(&s->cx->memory, text, strlen(text), 0, &error);
    if (!all)
        return fail(&s->cx->diag, NOWHERE, "metadata %s is no list of tables", forms[kind].note);
    cleanup_push(&s->cx->memory, &cleanup, drop_json, all);
    const bool good = read_pairs(s, all, &s->facts.tables[kind]);
    cleanup_drop(&cleanup);
    json_decref(all);
    return good ? OK : fail(&s->cx->diag, NOWHERE, "metadata %s is no list of tables", forms[kind].note);
}

Status step_tables_from_notes(qcc_step *s, const StepNotes *notes)
{
    for (int k = 0; k < TABLE_KINDS; k++)
        for (size_t i = 0; i < notes->n; i++)
            if (strcmp(notes->list[i].key, forms[k].note) == 0)
                TRY(read_note(s, (TableKind)k, notes->list[i].value));
    return OK;
}
