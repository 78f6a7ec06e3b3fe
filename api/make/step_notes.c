/* What the file of a step remembers of how it was made, and what that refuses. */
#include <string.h>

#include "api/make/recipe.h"
#include "api/make/recipe_parts.h"
#include "api/make/table_texts.h"
#include "ir/store/json_text.h"
#include "passes/recipe/choices.h"

#define NOTE_OPTIONS  "qcc.options"
#define NOTE_IDENTITY "qcc.identity"
#define NOTE_TIES     "qcc.ties"
#define NOTE_MODEL    "qcc.model"
#define NOTE_WHY      "qcc.loss_why"
#define NOTE_WEIGHTS  "qcc.loss_weights"

/* The ties that were made again, as JSON: [["state","twin",transposed],..]. */
static const char *ties_text(qcc_step *s)
{
    const Choices *c = s->recipe.choices;
    Text t;
    bool any = false;
    text_open(&t, &s->cx->scratch);
    for (size_t i = 0; c && i < c->n; i++) {
        const Choice *x = &c->list[i];
        if (x->kind != CHOICE_TIED)
            continue;
        text_add(&t, any ? ",[" : "[");
        text_json(&t, x->tied_to, strlen(x->tied_to));
        text_char(&t, ',');
        text_json(&t, x->name, strlen(x->name));
        text_add(&t, x->transposed ? ",true]" : ",false]");
        any = true;
    }
    return any ? arena_printf(&s->cx->scratch, "[%s]", text_get(&t)) : NULL;
}

Status recipe_to_notes(qcc_step *s, StepNotes *notes)
{
    StepNote *list = NEWS(&s->cx->scratch, StepNote, 6 + TABLE_KINDS);
    const char *ties = ties_text(s), *weights = recipe_weights_text(s);
    size_t n = 0;
    list[n++] = (StepNote){ NOTE_OPTIONS, s->facts.options };
    list[n++] = (StepNote){ NOTE_IDENTITY, s->facts.identity };
    if (ties)
        list[n++] = (StepNote){ NOTE_TIES, ties };
    step_tables_to_notes(s, list, &n);
    if (weights)
        list[n++] = (StepNote){ NOTE_WEIGHTS, weights };
    if (s->facts.origin)
        list[n++] = (StepNote){ NOTE_MODEL, s->facts.origin };
    if (s->facts.loss_why)
        list[n++] = (StepNote){ NOTE_WHY, s->facts.loss_why };
    *notes = (StepNotes){ list, n };
    return OK;
}

static const char *note(const StepNotes *notes, const char *key)
{
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->list[i].key, key) == 0)
            return notes->list[i].value;
    return NULL;
}

/* One tie: ["state","twin",true]. */
static bool read_tie(qcc_step *s, json_t *tie)
{
    const char *state = json_string_value(json_array_get(tie, 0)), *twin = json_string_value(json_array_get(tie, 1));
    if (!state || !twin)
        return false;
    Choices *c = s->recipe.choices;
    GROW(&s->arena, c->list, c->n, c->cap);
    c->list[c->n++] = (Choice){ .name = arena_string(&s->arena, twin),
                                .file = arena_string(&s->arena, twin),
                                .path = arena_string(&s->arena, twin),
                                .kind = CHOICE_TIED,
                                .tied_to = arena_string(&s->arena, state),
                                .transposed = json_is_true(json_array_get(tie, 2)) };
    return true;
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

static Status read_ties(qcc_step *s, const char *text)
{
    Cleanup cleanup;
    bool good = true;
    json_error_t error;
    json_t *all = text ? json_text(&s->cx->memory, text, strlen(text), 0, &error) : NULL;
    s->recipe.choices = NEW(&s->arena, Choices);
    if (!text)
        return OK;
    if (all)
        cleanup_push(&s->cx->memory, &cleanup, drop_json, all);
    good = all && json_is_array(all);
    for (size_t i = 0; good && i < json_array_size(all); i++)
        good = read_tie(s, json_array_get(all, i));
    if (all) {
        cleanup_drop(&cleanup);
        json_decref(all);
    }
    return good ? OK : fail(&s->cx->diag, NOWHERE, "metadata %s is no list of ties", NOTE_TIES);
}

Status recipe_from_notes(qcc_step *s, const StepNotes *notes)
{
    CommandLine line = { 0 };
    const char *options = note(notes, NOTE_OPTIONS), *identity = note(notes, NOTE_IDENTITY);
    Graph *g = module_graph(s->module, "eval");
    TRY(options_read_text(&s->cx->diag, &s->arena, "metadata " NOTE_OPTIONS, options, TEXT_RECORDED, &line));
    s->facts.recorded = true;
    TRY(read_ties(s, note(notes, NOTE_TIES)));
    TRY(step_tables_from_notes(s, notes));
    TRY(recipe_weights_read(s, note(notes, NOTE_WEIGHTS)));
    TRY(recipe_add_options(s, &line));
    if (g && option_given(&line, OPT_loss)) {
        TRY(recipe_add_losses(s, g, &line));
        TRY(recipe_find_targets(s, g));
    }
    s->facts.options = options ? options : "";
    s->facts.identity = identity ? identity : "";
    s->facts.silent = !options;
    s->facts.origin = note(notes, NOTE_MODEL);
    s->facts.loss_why = note(notes, NOTE_WHY);
    recipe_set_words(s);
    if (s->facts.silent)
        s->facts.loss = s->facts.optimizer = "as the text of the step says";
    return OK;
}

const char *recipe_recorded(qcc_step *s, Option o)
{
    CommandLine was;
    return options_read_text(&s->cx->diag, &s->arena, "metadata " NOTE_OPTIONS, s->facts.options, TEXT_RECORDED,
                             &was) == OK
               ? option_text(&was, o)
               : NULL;
}

const char *recipe_compile_line(qcc_step *s, const CommandLine *line)
{
    CommandLine was, all = { 0 };
    Text t;
    if (options_read_text(&s->cx->diag, &s->arena, "metadata " NOTE_OPTIONS, s->facts.options, TEXT_RECORDED, &was) !=
        OK)
        return "";
    for (size_t i = 0; i < was.n_given; i++)
        if (!option_given(line, was.given[i].option))
            option_add(&s->arena, &all, was.given[i].option, was.given[i].value);
    for (size_t i = 0; i < line->n_given; i++)
        if (option_is_recorded(line->given[i].option))
            option_add(&s->arena, &all, line->given[i].option, line->given[i].value);
    text_open(&t, &s->arena);
    text_printf(&t, "qcc %s ", s->facts.origin ? s->facts.origin : "MODEL.onnx");
    options_print_line(&t, &all);
    return text_get(&t);
}

Status recipe_refuse(qcc_step *s, const CommandLine *line)
{
    for (size_t i = 0; i < line->n_given; i++) {
        if (!option_is_compiled(line->given[i].option))
            continue;
        Place place = NOWHERE;
        place.where = option_specs[line->given[i].option].name;
        Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, place, "was decided when the step was compiled");
        message_try(m, "%s -o %s", recipe_compile_line(s, line), s->model->file);
        return message_send(m);
    }
    return OK;
}
