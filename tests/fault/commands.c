#include "fault/commands.h"

#include <dirent.h>
#include <sys/stat.h>

#define DATA  " --data @/x.csv --target @/y.csv --batch 2 --threads 1 --progress none"
#define MODEL "TESTS/command/models/mlp.onnx"

const CommandText command_texts[] = {
    { "--help", QCC_OK },
    { "--help=man", QCC_OK },
    { "--version", QCC_OK },
    { "--list-ops", QCC_OK },
    { "--print-table amp", QCC_OK },
    { "--print-config --batch 2 " MODEL, QCC_OK },
    { MODEL " --batch 2 --dry-run", QCC_OK },
    { MODEL " --batch 2 --amp fp16 --dry-run", QCC_OK },
    { MODEL " --batch 2 --wrong", QCC_USAGE },
    { MODEL " --batch 2 --train nothing --dry-run", QCC_USAGE },
    { MODEL " --batch 2 --teacher " MODEL " --dry-run", QCC_OK },
    { MODEL " --batch 2 --amp bf16 -o @/step.onnx", QCC_OK },
    { MODEL " --emit ir", QCC_OK },
    { MODEL " --batch 2 --emit program", QCC_OK },
    { MODEL " --emit plan", QCC_UNSUPPORTED },
    { MODEL " --emit html -o @/page.html", QCC_OK },
    { MODEL " --batch 2 --loss mse --emit onnx-step -o @/flat.onnx", QCC_OK },
    { "explain " MODEL " --batch 2 --amp bf16", QCC_OK },
    { "explain " MODEL " --batch 2 --amp bf16 --node op:MatMul", QCC_OK },
    { "explain @/step.onnx", QCC_OK },
    { "explain @/step.onnx --plan", QCC_OK },
    { "check " MODEL, QCC_OK },
    { "check @/step.onnx", QCC_OK },
    { "check --suite TESTS/data/gradient --filter another_place --threads 1 --exceptions TESTS/suite/exceptions.txt",
      QCC_OK, QCC_MISMATCH }, /* a case that finds none has failed */
    { "run " MODEL " --input x=TESTS/command/models/x.npy --output y=@/out.npy", QCC_OK },
    { "run " MODEL " --input x=TESTS/command/models/x.npy --expect y=TESTS/command/models/y.npy", QCC_OK },
    { "run " MODEL " --input x=TESTS/command/models/x.npy --expect y=TESTS/command/models/y_wrong.npy", QCC_MISMATCH },
    { "diff " MODEL " " MODEL " --batch 2", QCC_OK },
    { "export " MODEL " -o @/same.onnx", QCC_OK },
    { "export " MODEL " --dtype fp16 --round-constants -o @/narrow.onnx", QCC_OK },
    { "train " MODEL DATA
      " --steps 3 --overwrite --checkpoint @/one.safetensors --log @/log.jsonl --tensorboard @/board"
      " --gradients @/gradients.safetensors -o @/trained.onnx",
      QCC_OK },
    { "train " MODEL DATA " --steps 4 --amp fp16 --checkpoint @/run --resume --val @/x.csv --every 2 --no-save",
      QCC_USAGE },
    { "train " MODEL DATA " --steps 4 --checkpoint @/run --resume", QCC_OK },
    { "eval " MODEL DATA " --checkpoint @/one.safetensors", QCC_OK },
    { "export " MODEL " --batch 2 --checkpoint @/one.safetensors -o @/final.onnx --verify x=@/x.csv,target=@/y.csv",
      QCC_OK },
};

const size_t n_command_texts = sizeof command_texts / sizeof *command_texts;

static bool write_text(const World *w, const char *name, const char *text)
{
    FILE *f = fopen(world_path(w, name), "we");
    const bool ok = f && fputs(text, f) >= 0;
    return f && fclose(f) == 0 && ok;
}

bool commands_prepare(World *w, const char *tests)
{
    (void)tests;
    return write_text(w, "x.csv", "1,0,0,1\n0,1,0,1\n0,0,1,1\n1,1,0,0\n") && write_text(w, "y.csv", "0\n1\n1\n0\n");
}

enum { MOST_WORDS = 40, LONGEST_WORD = 512 };

static void put_word(const World *w, const char *tests, const char *from, size_t n, char *to)
{
    const char *own = from[0] == '@' ? w->folder : NULL, *at = memchr(from, '=', n);
    if (at && at[1] == '@')
        own = w->folder;
    const char *place = own ? memchr(from, '@', n) : NULL, *of_tests = strstr(from, "TESTS/");
    if (!place && of_tests && of_tests < from + n)
        place = of_tests;
    const size_t skip = own ? 1 : 5, head = place ? (size_t)(place - from) : n;
    if (!place)
        snprintf(to, LONGEST_WORD, "%.*s", (int)n, from);
    else
        snprintf(to, LONGEST_WORD, "%.*s%s%.*s", (int)head, from, own ? own : tests, (int)(n - head - skip),
                 place + skip);
}

/* A list of pairs, x=@/..,y=@/.., has the folder twice. */
static void put_pairs(const World *w, const char *tests, const char *from, size_t n, char *to)
{
    const char *comma = memchr(from, ',', n);
    size_t at;
    if (!comma || !memchr(from, '@', n)) {
        put_word(w, tests, from, n, to);
        return;
    }
    put_word(w, tests, from, (size_t)(comma - from), to);
    at = strlen(to);
    to[at++] = ',';
    char rest[LONGEST_WORD];
    put_word(w, tests, comma + 1, n - (size_t)(comma + 1 - from), rest);
    snprintf(to + at, LONGEST_WORD - at, "%s", rest);
}

qcc_status command_do(World *w, const char *tests, const CommandText *line)
{
    static char words[MOST_WORDS][LONGEST_WORD];
    const char *argv[MOST_WORDS] = { "qcc" };
    const qcc_sink sink = world_nowhere();
    int argc = 1;
    for (const char *p = line->text; *p && argc < MOST_WORDS;) {
        const size_t n = strcspn(p, " ");
        put_pairs(w, tests, p, n, words[argc]);
        argv[argc] = words[argc];
        argc += n > 0;
        p += n + (p[n] == ' ');
    }
    return qcc_command(w->context, argc, argv, &sink);
}

bool commands_left_halves(const World *w)
{
    bool found = false;
    DIR *d = opendir(w->folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".tmp-")) {
            printf("%s is left\n", e->d_name);
            found = true;
        }
    if (d)
        closedir(d);
    return found;
}
