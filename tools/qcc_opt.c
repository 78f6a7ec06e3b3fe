/* qcc_opt: reads a graph, runs passes over it by name, prints it.  For people who work on the compiler. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/number_text.h"
#include "codegen/program.h"
#include "codegen/regions.h"
#include "frontends/onnx/import.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "ops/card/cards.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"

static const char usage[] =
    "usage: qcc_opt [OPTION ...] FILE.qir|FILE.onnx [PASS|PIPELINE ...]\n"
    "\n"
    "  -o FILE             write FILE, and FILE.safetensors for large constants; default: print, constants by name\n"
    "  --inline            write large constants as hex into the text\n"
    "  --passes A,B,..     the same as naming them behind the file\n"
    "  --save-temps DIR    write the graph after each pass into DIR, which must be there\n"
    "  --print-after PASS  print the graph after that pass, or after all\n"
    "  --stop-after PASS   do not go on\n"
    "  --pass-limit N      only so many applications of rules, to find the one that does harm\n"
    "  --verify-each       verify after each pass: the graph, the facts, the text\n"
    "  --verify-each=values   and what it computes, before and after, on drawn inputs\n"
    "  --time-passes       say how long each pass took and what it did\n"
    "  --trace             a remark for each application of a rule\n"
    "  --exact-casts       no rule that removes a rounding\n"
    "  --tapes             print the tape of each fused node, not the graph\n"
    "  --cuda              print the kernels of each fused node as text for CUDA, without what every program begins with\n"
    "  --plan              print where values lie, not the graph\n"
    "  --program           print the launches that run it, not the graph; with --tapes those of its regions, too\n"
    "  --no-verify         leave out the verification of what was read\n"
    "  --batch N, --dim NAME=N   bind symbolic dimensions of a model\n"
    "  --list              the passes and pipelines\n"
    "  --help              this text\n";

typedef struct Opt {
    int argc;
    char **argv;
    const char *file, *output;
    const char *print_after, *temps;
    int n_temps;
    Status temps_status; /* the first failure to write one */
    bool in_text, unverified, help, list, tapes, cuda, plan, program;
    const Pass **passes;
    size_t n_passes, cap_passes;
    const Pipeline *of_bodies; /* the last one named that runs on bodies, too; null: none */
    PipelineOptions pipeline;
    ImportOptions import;
    DimBinding *dims;
    size_t cap_dims;
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    SourceMap source;
    Spine spine;
    Module *module;
} Opt;

static void report(void *user, const Message *m)
{
    Text t;
    text_open(&t, ((Opt *)user)->diag.arena);
    message_print(&t, m);
    fputs(text_get(&t), stderr);
}

static Status bad_usage(Opt *o, const char *what, const char *word)
{
    return fail_as(&o->diag, USAGE, NOWHERE, "%s%s (qcc_opt --help)", what, word);
}

/* ---- the command line ---- */

typedef struct Option {
    const char *name;
    bool takes_value;
    Status (*set)(Opt *o, const char *value);
    size_t flag; /* without `set`: where the bool of Opt is that it sets */
} Option;

#define FLAG(name, field)                                                                                              \
    {                                                                                                                  \
        name, false, NULL, offsetof(Opt, field)                                                                        \
    }
#define SETS(name, takes_value, set)                                                                                   \
    {                                                                                                                  \
        name, takes_value, set, 0                                                                                      \
    }

static Status set_output(Opt *o, const char *value)
{
    o->output = value;
    return OK;
}

static Status write_file(Opt *o, const char *path, const char *text, size_t n)
{
    FileOut file;
    TRY(file_create(&file, &o->arena, &o->diag, path));
    const Status status = file_write(&file, text, n);
    if (status == OK)
        return file_keep(&file);
    file_drop(&file);
    return status;
}

static void after_pass(void *user, const char *pass, const char *text)
{
    Opt *o = user;
    if (o->print_after && (strcmp(o->print_after, "all") == 0 || pass_find(o->print_after) == pass_find(pass)))
        printf("# after %s\n%s", pass, text);
    if (!o->temps || o->temps_status != OK)
        return;
    const char *path = arena_printf(&o->arena, "%s/%03d-%s.qir", o->temps, o->n_temps++, pass);
    o->temps_status = write_file(o, path, text, strlen(text));
}

static void time_pass(void *user, const PassReport *r)
{
    (void)user;
    fprintf(stderr, "%8.3f ms  %-18s %8" PRId64 " changes  %zu -> %zu nodes\n", r->seconds * 1e3, r->pass->name,
            r->changes, r->before, r->after);
}

static bool is_pass(const char *name)
{
    return strcmp(name, "all") == 0 || pass_find(name);
}

static Status set_print_after(Opt *o, const char *value)
{
    o->print_after = value;
    o->pipeline.print_after = "all";
    o->pipeline.print = after_pass;
    return is_pass(value) ? OK : bad_usage(o, "no pass is called ", value);
}

static Status set_temps(Opt *o, const char *value)
{
    o->temps = value;
    o->pipeline.print_after = "all";
    o->pipeline.print = after_pass;
    return OK;
}

static Status set_stop_after(Opt *o, const char *value)
{
    o->pipeline.stop_after = value;
    return is_pass(value) ? OK : bad_usage(o, "no pass is called ", value);
}

static Status set_pass_limit(Opt *o, const char *value)
{
    const bool good = i64_from_text(value, strlen(value), &o->pipeline.pass_limit) && o->pipeline.pass_limit > 0;
    return good ? OK : bad_usage(o, "--pass-limit takes a number from 1, not ", value);
}

static Status set_verify_each(Opt *o, const char *value)
{
    const bool values = value && strcmp(value, "values") == 0;
    o->pipeline.verify_each = values ? VERIFY_VALUES : VERIFY_GRAPH;
    return !value || values ? OK : bad_usage(o, "--verify-each takes nothing or values, not ", value);
}

static Status set_time(Opt *o, const char *value)
{
    (void)value;
    o->pipeline.report = time_pass;
    return OK;
}

static Status set_trace(Opt *o, const char *value)
{
    (void)value;
    o->pipeline.pass.trace = true;
    return OK;
}

static Status set_exact(Opt *o, const char *value)
{
    (void)value;
    o->pipeline.pass.exact_casts = true;
    return OK;
}

static Status set_batch(Opt *o, const char *value)
{
    const bool good = i64_from_text(value, strlen(value), &o->import.batch) && o->import.batch > 0;
    return good ? OK : bad_usage(o, "--batch takes a number from 1, not ", value);
}

static Status set_dim(Opt *o, const char *value)
{
    const char *equals = strrchr(value, '=');
    DimBinding dim = { 0 };
    if (!equals || !i64_from_text(equals + 1, strlen(equals + 1), &dim.value) || dim.value < 0)
        return bad_usage(o, "--dim takes NAME=N, not ", value);
    dim.name = arena_copy(&o->arena, value, (size_t)(equals - value));
    GROW(&o->arena, o->dims, o->import.n_dims, o->cap_dims);
    o->dims[o->import.n_dims++] = dim;
    o->import.dims = o->dims;
    return OK;
}

static void add_pass(Opt *o, const Pass *pass)
{
    GROW(&o->arena, o->passes, o->n_passes, o->cap_passes);
    o->passes[o->n_passes++] = pass;
}

static Status read_word(Opt *o, const char *word)
{
    const Pass *pass = pass_find(word);
    const Pipeline *pipeline = pipeline_find(word);
    if (!pass && !pipeline) {
        const char **names = NEWS(&o->arena, const char *, n_all_passes);
        for (size_t i = 0; i < n_all_passes; i++)
            names[i] = all_passes[i]->name;
        const char *near = str_nearest(word, names, n_all_passes);
        Message *m = message_new(&o->diag, SEVERITY_ERROR, USAGE, NOWHERE, "no pass is called %s", word);
        message_try(m, "%s", near ? near : "qcc_opt --list");
        return message_send(m);
    }
    if (pass)
        add_pass(o, pass);
    for (size_t i = 0; pipeline && i < pipeline->n; i++)
        add_pass(o, pipeline->passes[i]);
    if (pipeline && pipeline->bodies)
        o->of_bodies = pipeline;
    return OK;
}

static Status set_passes(Opt *o, const char *value)
{
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, ",");
        TRY(read_word(o, arena_copy(&o->arena, at, n)));
        at += n + (at[n] == ',');
    }
    return OK;
}

static const Option options[] = {
    SETS("-o", true, set_output),
    FLAG("--inline", in_text),
    FLAG("--tapes", tapes),
    FLAG("--cuda", cuda),
    FLAG("--plan", plan),
    FLAG("--program", program),
    SETS("--passes", true, set_passes),
    SETS("--save-temps", true, set_temps),
    SETS("--print-after", true, set_print_after),
    SETS("--stop-after", true, set_stop_after),
    SETS("--pass-limit", true, set_pass_limit),
    SETS("--verify-each", false, set_verify_each),
    SETS("--time-passes", false, set_time),
    SETS("--trace", false, set_trace),
    SETS("--exact-casts", false, set_exact),
    FLAG("--no-verify", unverified),
    SETS("--batch", true, set_batch),
    SETS("--dim", true, set_dim),
    FLAG("--list", list),
    FLAG("--help", help),
};

static Status unknown_option(Opt *o, const char *word)
{
    const char *names[COUNT(options)];
    for (size_t i = 0; i < COUNT(options); i++)
        names[i] = options[i].name;
    const char *near = str_nearest(word, names, COUNT(names));
    Message *m = message_new(&o->diag, SEVERITY_ERROR, USAGE, NOWHERE, "no option is called %s", word);
    message_try(m, "%s", near ? near : "qcc_opt --help");
    return message_send(m);
}

/* --name, --name=value, --name value. */
static Status read_option(Opt *o, int *i)
{
    const char *word = o->argv[*i], *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    const Str name = { word, equals ? (size_t)(equals - word) : strlen(word) };
    for (size_t k = 0; k < COUNT(options); k++) {
        if (!str_is(name, options[k].name))
            continue;
        const char *value = equals ? equals + 1 : NULL;
        if (options[k].takes_value && !value && *i + 1 < o->argc)
            value = o->argv[++*i];
        if (options[k].takes_value && !value)
            return bad_usage(o, "a value is missing behind ", word);
        if (options[k].set)
            return options[k].set(o, value);
        *(bool *)((char *)o + options[k].flag) = true;
        return OK;
    }
    return unknown_option(o, word);
}

static Status read_arguments(Opt *o)
{
    for (int i = 1; i < o->argc; i++) {
        if (o->argv[i][0] == '-')
            TRY(read_option(o, &i));
        else if (!o->file)
            o->file = o->argv[i];
        else
            TRY(read_word(o, o->argv[i]));
    }
    return o->file || o->help || o->list ? OK : bad_usage(o, "no file is given", "");
}

static void print_list(void)
{
    puts("passes:");
    for (size_t i = 0; i < n_all_passes; i++)
        printf("  %s\n", all_passes[i]->name);
    puts("pipelines:");
    for (size_t i = 0; i < n_all_pipelines; i++) {
        printf("  %s:", all_pipelines[i].name);
        for (size_t k = 0; k < all_pipelines[i].n; k++)
            printf(" %s", all_pipelines[i].passes[k]->name);
        puts("");
    }
}

/* ---- the work ---- */

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static Status read_graph(Opt *o)
{
    if (ends_in(o->file, ".qir"))
        return parse_file(&o->ir, &o->arena, o->file, &o->source, &o->module);
    TRY(spine_open(&o->spine, &o->memory, &o->diag, &o->ir.limits, o->file));
    return onnx_import(&o->ir, &o->arena, &o->spine, &o->import, &o->module);
}

static SourceMap *source_of(Opt *o)
{
    return o->source.module ? &o->source : NULL;
}

static Status run_passes(Opt *o)
{
    const Pipeline p = { "command line", TYPED, o->passes, o->n_passes, false };
    TRY(pipeline_check(&p, &o->diag));
    o->pipeline.user = o;
    TRY(pipeline_run_module(&p, o->module, &o->pipeline));
    for (size_t i = 0; o->of_bodies && i < o->module->n_graphs; i++)
        TRY(pipeline_run_bodies(o->of_bodies, o->module->graphs[i], &o->pipeline));
    return OK;
}

static Status write_text(Opt *o, const Text *text)
{
    if (o->output)
        return write_file(o, o->output, text_get(text), text->n);
    return fwrite(text_get(text), 1, text->n, stdout) == text->n && fflush(stdout) == 0 ? OK : IO;
}

static Status write_regions(Opt *o)
{
    Text text;
    text_open(&text, &o->arena);
    regions_print(&text, o->module, o->tapes, o->cuda);
    return write_text(o, &text);
}

static Status add_program(Opt *o, Text *text, const Plan *plan)
{
    const char *why;
    const Node *where = NULL;
    const Program *program = program_make(plan, &o->arena, &why, &where);
    if (!program)
        return fail_as(&o->diag, UNSUPPORTED, where ? node_place(where) : NOWHERE, "no program: it has %s", why);
    program_print(text, program, o->ir.ops, o->tapes);
    return OK;
}

/* Of each graph its plan or its program. */
static Status write_plans(Opt *o)
{
    Text text;
    text_open(&text, &o->arena);
    for (size_t i = 0; i < o->module->n_graphs; i++) {
        Graph *g = o->module->graphs[i];
        Plan plan;
        const Node *where = NULL;
        if (!plan_memory(g, &o->arena, &plan, &where))
            return fail_as(&o->diag, UNSUPPORTED, node_place(where), "%s: its size is not known before it runs",
                           op_of(where)->name);
        text_printf(&text, "%s%s: ", i ? "\n" : "", g->name);
        if (o->program)
            TRY(add_program(o, &text, &plan));
        else
            plan_print(&text, &plan);
    }
    return write_text(o, &text);
}

static Status write_graph(Opt *o)
{
    Text text;
    Blobs blobs;
    text_open(&text, &o->arena);
    blobs_open(&blobs, &o->arena);
    TRY(print_module(&text, o->module, o->in_text ? NULL : &blobs));
    if (o->output && blobs.n)
        TRY(blobs_write(&blobs, &o->ir, arena_printf(&o->arena, "%s.safetensors", o->output)));
    return write_text(o, &text);
}

static Status run_all(Opt *o)
{
    TRY(read_arguments(o));
    if (o->help || o->list) {
        if (o->help)
            fputs(usage, stdout);
        else
            print_list();
        return OK;
    }
    TRY(read_graph(o));
    if (!o->unverified)
        TRY(verify_module(o->module, source_of(o)));
    TRY(run_passes(o));
    TRY(o->temps_status);
    return o->plan || o->program ? write_plans(o) : o->tapes || o->cuda ? write_regions(o) : write_graph(o);
}

static Status run(void *arg)
{
    Opt *o = arg;
    arena_open(&o->arena, &o->memory);
    diag_open(&o->diag, &o->arena, report, o);
    ir_open(&o->ir, &o->arena, &ops_table, &o->diag);
    const Status status = run_all(o);
    if (o->spine.memory)
        spine_close(&o->spine);
    arena_close(&o->arena);
    return status;
}

int main(int argc, char **argv)
{
    Opt o = { .argc = argc, .argv = argv };
    memory_open(&o.memory, NULL);
    const Status status = guarded(&o.memory, run, &o);
    if (status == NO_MEMORY)
        fputs("qcc_opt: out of memory\n", stderr);
    return (int)status;
}
