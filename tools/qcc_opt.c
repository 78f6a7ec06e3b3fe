/* qcc_opt: reads a graph, runs passes over it by name, prints it.  For people who work on the compiler. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "frontends/onnx/import.h"
#include "ir/verify.h"
#include "ir/print.h"
#include "ops/cards.h"

static const char usage[] =
    "usage: qcc_opt [OPTION ...] FILE.qir|FILE.onnx [PASS ...]\n"
    "\n"
    "  -o FILE       write FILE, and FILE.safetensors for large constants; default: print, constants by name\n"
    "  --inline      write large constants as hex into the text\n"
    "  --no-verify   leave out the verification of what was read\n"
    "  --help        this text\n"
    "\n"
    "passes:\n"
    "  verify        check the graph once more\n"
    "  compact       number nodes anew\n";

typedef struct Opt {
    int argc;
    char **argv;
    const char *file, *output;
    bool in_text, unverified, help;
    const char **words;
    int n_words;
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

static Status read_arguments(Opt *o)
{
    o->words = NEWS(&o->arena, const char *, o->argc);
    for (int i = 1; i < o->argc; i++) {
        const char *word = o->argv[i];
        if (strcmp(word, "--help") == 0)
            o->help = true;
        else if (strcmp(word, "--inline") == 0)
            o->in_text = true;
        else if (strcmp(word, "--no-verify") == 0)
            o->unverified = true;
        else if (strcmp(word, "-o") == 0 && i + 1 < o->argc)
            o->output = o->argv[++i];
        else if (word[0] == '-')
            return bad_usage(o, "no option ", word);
        else if (!o->file)
            o->file = word;
        else
            o->words[o->n_words++] = word;
    }
    return o->file || o->help ? OK : bad_usage(o, "no file is given", "");
}

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
    return onnx_import(&o->ir, &o->arena, &o->spine, NULL, &o->module);
}

static SourceMap *source_of(Opt *o)
{
    return o->source.module ? &o->source : NULL;
}

static Status run_word(Opt *o, const char *word)
{
    if (strcmp(word, "verify") == 0)
        return verify_module(o->module, source_of(o));
    if (strcmp(word, "compact") != 0)
        return bad_usage(o, "no pass is called ", word);
    for (size_t i = 0; i < o->module->n_graphs; i++)
        graph_compact(o->module->graphs[i]);
    o->source = (SourceMap){ 0 };
    return OK;
}

static Status write_text(Opt *o, const Text *text)
{
    FileOut file;
    if (!o->output)
        return fwrite(text_get(text), 1, text->n, stdout) == text->n && fflush(stdout) == 0 ? OK : IO;
    TRY(file_create(&file, &o->arena, &o->diag, o->output));
    const Status status = file_write(&file, text_get(text), text->n);
    if (status == OK)
        return file_keep(&file);
    file_drop(&file);
    return status;
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
    if (o->help) {
        fputs(usage, stdout);
        return OK;
    }
    TRY(read_graph(o));
    if (!o->unverified)
        TRY(verify_module(o->module, source_of(o)));
    for (int i = 0; i < o->n_words; i++)
        TRY(run_word(o, o->words[i]));
    return write_graph(o);
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
