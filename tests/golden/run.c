/* Runs golden files: golden_run [--update] FOLDER|FILE ...
 *
 * --update writes them anew, but records no error that nobody asked for: where one is wanted, the line says so already,
 * with a part of the complaint or with "# error: ...", which stands for any. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "codegen/cuda/cuda_module.h"
#include "codegen/program.h"
#include "codegen/regions.h"
#include "golden/file.h"
#include "golden/values.h"
#include "ir/verify.h"
#include "passes/engine/pass.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"
#include "support/language.h"
#include "support/recipe.h"

typedef struct Case {
    const char *path;
    bool update;
    Language language;
    Golden golden;
    const char *text; /* what comes out where that is no graph */
} Case;

static Status complain(Case *c, const char *what, const char *more)
{
    printf("%s: %s\n%s", c->path, what, more);
    return MISMATCH;
}

/* ---- what a file may ask for ---- */

typedef struct Verb {
    const char *name;
    Status (*run)(Case *c, Module **m);
    bool changes; /* the graph: both sides are evaluated and compared */
} Verb;

static Status run_print(Case *c, Module **m)
{
    (void)c, (void)m;
    return OK;
}

static Status run_verify(Case *c, Module **m)
{
    return verify_module(*m, &c->language.source);
}

static Status run_evaluate(Case *c, Module **m)
{
    TRY(run_verify(c, m));
    *m = golden_values(*m, &c->language.arena);
    return *m ? OK : INVALID;
}

static Status run_regions(Case *c, Module **m)
{
    Text text;
    TRY(run_verify(c, m));
    text_open(&text, &c->language.arena);
    regions_print(&text, *m, true, true);
    c->text = text_get(&text);
    return OK;
}

/* The program of a graph; null, after a word. */
static const Program *program_of(Case *c, Graph *g)
{
    Plan plan;
    const char *why = NULL;
    const Node *where = NULL;
    const Program *p = plan_memory(g, &c->language.arena, &plan, &where)
                           ? program_make(&plan, &c->language.arena, &why, &where)
                           : NULL;
    if (!p) {
        (void)complain(c, "has no program", why ? why : "");
        return NULL;
    }
    why = program_check(p, &c->language.arena);
    if (why)
        (void)complain(c, "has a wrong program", why);
    return why ? NULL : p;
}

/* The programs of all graphs, with their tapes. */
static Status run_program(Case *c, Module **m)
{
    Text text;
    TRY(run_verify(c, m));
    text_open(&text, &c->language.arena);
    for (size_t i = 0; i < (*m)->n_graphs; i++) {
        const Program *p = program_of(c, (*m)->graphs[i]);
        if (!p)
            return MISMATCH;
        program_print(&text, p, (*m)->graphs[i]->ir->ops, true);
    }
    c->text = text_get(&text);
    return OK;
}

/* The kernels of the programs of all graphs, annotated. */
static Status print_kernels(Case *c, Module **m, bool narrow)
{
    CudaModule made;
    Text text;
    TRY(run_verify(c, m));
    text_open(&text, &c->language.arena);
    cuda_module_open(&made, (*m)->graphs[0]->ir->ops, &c->language.arena);
    made.target.narrow = made.target.narrow_codes = narrow;
    for (size_t i = 0; i < (*m)->n_graphs; i++) {
        const Program *p = program_of(c, (*m)->graphs[i]);
        if (!p)
            return MISMATCH;
        cuda_module_add(&made, p, (*m)->graphs[i]->name);
    }
    cuda_module_print(&made, true, &text);
    c->text = text_get(&text);
    return OK;
}

static Status run_kernels(Case *c, Module **m)
{
    return print_kernels(c, m, false);
}

/* Those for a device whose tensor cores may multiply narrow types. */
static Status run_tensor_kernels(Case *c, Module **m)
{
    return print_kernels(c, m, true);
}

static const Verb verbs[] = {
    { "print", run_print, false },
    { "verify", run_verify, false },
    { "evaluate", run_evaluate, false },
    { "regions", run_regions, false },
    { "program", run_program, false },
    { "kernels", run_kernels, false },
    { "tensor-kernels", run_tensor_kernels, false },
};

static const Verb *find_verb(Str word)
{
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (str_is(word, verbs[i].name))
            return &verbs[i];
    return NULL;
}

/* A pass, on every graph; what comes out is verified. */
static Status run_pass(Case *c, Module *m, const Pass *pass)
{
    Str said;
    Recipe recipe = { .n_groups = 0 };
    PassOptions options = { .recipe = &recipe };
    TRY(verify_module(m, &c->language.source));
    if (recipe_line(c->golden.input, &said))
        TRY(recipe_from_options(&recipe, &c->language.ir, &c->language.arena, said, c->path));
    TRY(recipe_teacher(&recipe, &c->language.ir, &c->language.arena, c->path));
    recipe_whole(&recipe, &c->language.arena, c->golden.input);
    options.exact_casts = recipe.precision.exact_casts;
    for (size_t i = 0; i < m->n_graphs; i++)
        TRY(pass_run(pass, m->graphs[i], &(PassRun){ .options = &options, .allowed = -1 }));
    return verify_module(m, NULL);
}

static Status run_word(Case *c, Module **m, Str word, bool *changes)
{
    const char *name = arena_copy(&c->language.arena, word.p, word.n);
    const Verb *verb = find_verb(word);
    const Pass *pass = verb ? NULL : pass_find(name);
    const Pipeline *pipeline = verb || pass ? NULL : pipeline_find(name);
    if (verb) {
        *changes |= verb->changes;
        return verb->run(c, m);
    }
    if (!pass && !pipeline)
        return complain(c, "nothing is called ", arena_printf(&c->language.arena, "%s\n", name));
    *changes = true;
    if (pass)
        return run_pass(c, *m, pass);
    for (size_t i = 0; i < pipeline->n; i++)
        TRY(run_pass(c, *m, pipeline->passes[i]));
    for (size_t i = 0; i < (*m)->n_graphs; i++)
        TRY(pipeline_run_bodies(pipeline, (*m)->graphs[i], NULL));
    return OK;
}

static Status run_words(Case *c, Module **m, bool *changes)
{
    Str rest = c->golden.run;
    while (rest.n) {
        size_t n = 0;
        while (n < rest.n && rest.p[n] != ' ')
            n++;
        if (n)
            TRY(run_word(c, m, (Str){ rest.p, n }, changes));
        rest = (Str){ rest.p + n + (n < rest.n), rest.n - n - (n < rest.n) };
    }
    return OK;
}

/* ---- one file ---- */

static bool is_expected(Case *c, const Message *m)
{
    return m->severity != SEVERITY_ERROR || golden_meet(&c->golden, &c->language.arena, m) ||
           (c->update && golden_takes_any(&c->golden, m));
}

static bool no_error_too_many(Case *c)
{
    bool good = true;
    for (size_t i = 0; i < c->language.n_list; i++)
        if (!is_expected(c, c->language.list[i]))
            good = false;
    if (!good)
        (void)complain(c, "errors that nobody expects:",
                       arena_printf(&c->language.arena, "\n%s", text_get(&c->language.messages)));
    return good;
}

static bool errors_as_expected(Case *c)
{
    bool good = no_error_too_many(c);
    for (size_t i = 0; i < c->golden.n_errors; i++) {
        const Expected *e = &c->golden.errors[i];
        if (!e->met) {
            (void)complain(c, "an error that did not come:",
                           arena_printf(&c->language.arena, " line %d: %.*s\n", e->line, STR_ARG(e->text)));
            good = false;
        }
    }
    return good;
}

/* Printing what was parsed, parsing it again and printing that gives the same bytes. */
static Status round_trip(Case *c, const Module *m, Str what)
{
    Language *l = &c->language;
    const char *once = language_print(l, m, NULL);
    const SourceMap source = l->source; /* of the input, still needed */
    Module *again = once ? language_parse(l, once, NULL) : NULL;
    const char *twice = again ? language_print(l, again, NULL) : NULL;
    l->source = source;
    if (!twice || strcmp(once, twice) != 0)
        return complain(c, "does not survive being printed and parsed:\n", once ? once : text_get(&l->messages));
    if (what.p && !str_is(what, once))
        return complain(c, "is not what its own text prints as:\n", once);
    return OK;
}

static Status rewrite(Case *c, const char *output)
{
    FileOut file;
    Language *l = &c->language;
    const char *kept = output && !c->golden.has_output && str_is(c->golden.body, output) ? NULL : output;
    const Str text = golden_rewritten(&c->golden, &l->arena, l->list, l->n_list, kept);
    if (str_equal(text, c->golden.text))
        return OK;
    TRY(file_create(&file, &l->arena, &l->diag, c->path));
    TRY(file_write(&file, text.p, text.n));
    printf("%s: rewritten\n", c->path);
    return file_keep(&file);
}

static Status same_values(Case *c, const Module *before, const Module *after)
{
    Language *l = &c->language;
    for (size_t i = 0; i < before->n_graphs; i++) {
        Graph *a = before->graphs[i], *b = a->name ? module_graph(after, a->name) : NULL;
        const char *difference = b ? golden_compare(a, b,
                                                    c->golden.narrow   ? PRECISION
                                                    : c->golden.rounds ? ROUNDS
                                                                       : EXACT,
                                                    &l->arena)
                                   : NULL;
        if (difference)
            return complain(c, difference, arena_printf(&l->arena, "\n%s", text_get(&l->messages)));
    }
    return OK;
}

static Status compare_output(Case *c, const Module *input, const char *output, bool changes)
{
    Language *l = &c->language;
    const Str wanted = c->golden.has_output ? c->golden.output : c->golden.body;
    if (!str_is(wanted, output))
        return complain(c, "something else comes out:\n", output);
    if (c->text)
        return OK;
    Module *after = language_parse(l, output, NULL);
    if (!after)
        return complain(c, "its output is not read back:\n", text_get(&l->messages));
    TRY(round_trip(c, after, wanted));
    return changes && !c->golden.no_values ? same_values(c, input, after) : OK;
}

static Status run_case(void *arg)
{
    Case *c = arg;
    Language *l = &c->language;
    Str text;
    bool changes = false;
    language_open(l);
    TRY(file_read(&l->arena, &l->diag, c->path, l->ir.limits.model_bytes, "model_bytes", &text));
    golden_read(&c->golden, &l->arena, c->path, text);
    const char *body = arena_copy(&l->arena, c->golden.input.p, c->golden.input.n), *output = NULL;
    Module *m = language_parse(l, body, NULL), *input = m ? language_parse(l, body, NULL) : NULL;
    if (m) {
        TRY(round_trip(c, m, (Str){ 0 }));
        m = language_parse(l, body, NULL);
        const Status status = run_words(c, &m, &changes);
        if (status == MISMATCH)
            return status;
        output = status != OK ? NULL : c->text ? c->text : language_print(l, m, NULL);
    }
    if (c->update ? !no_error_too_many(c) : !errors_as_expected(c))
        return MISMATCH;
    if (!output && !c->golden.n_errors)
        return complain(c, "failed without a word\n", "");
    if (c->update)
        return rewrite(c, output);
    if (!output)
        return OK;
    if (c->golden.n_errors && !c->golden.has_output)
        return OK;
    return compare_output(c, input, output, changes);
}

static int run_file(const char *path, bool update)
{
    Case c = { .path = path, .update = update };
    memory_open(&c.language.memory, NULL);
    const Status status = run_case(&c);
    if (status != OK && status != MISMATCH)
        printf("%s: %s", path, text_get(&c.language.messages));
    language_close(&c.language);
    return status != OK;
}

static int is_golden(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".qir") == 0;
}

int main(int argc, char **argv)
{
    int ran = 0, failed = 0;
    bool update = false;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        if (strcmp(argv[i], "--update") == 0) {
            update = true;
            continue;
        }
        const int n = scandir(argv[i], &entries, is_golden, alphasort);
        if (n < 0) {
            ran++;
            failed += run_file(argv[i], update);
        }
        for (int k = 0; k < n; k++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entries[k]->d_name);
            ran++;
            failed += run_file(path, update);
            free(entries[k]);
        }
        if (n >= 0)
            free(entries);
    }
    printf("%d files, %d failed\n", ran, failed);
    return failed || !ran;
}
