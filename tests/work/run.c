/* Nothing is quadratic: command lines over every shape of many, at n and at 4n, by the instructions that they take.
 * valgrind counts them, exactly and the same each time, those of the C library among them.
 *
 * work QCC [SHAPE [WORD]]: of one shape, the lines with a word; prints what each took.  Exits 77 without valgrind. */
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work/files.h"
#include "work/shapes.h"

/* Command lines; of those with a shape only that one's.  M is the model, S the step that it compiles to, O a file that
 * may be written.  What stands between ( and ) is there n times, # being its number; [ and ] put it into one word. */
static const struct {
    const char *shape, *line;
} lines[] = {
    { NULL, "check M" },
    { NULL, "explain M" },
    { NULL, "explain M --node x" },
    { NULL, "run M --input none=x.npy" },
    { NULL, "diff M M" },
    { NULL, "M --emit ir -o O" },
    { NULL, "M --emit onnx -o O" },
    { NULL, "M --emit json -o O" },
    { NULL, "M --emit dot -o O" },
    { NULL, "M --emit html -o O" },
    { NULL, "M --emit onnx-step --loss mse:y -o O" },
    { NULL, "export M -o O" },
    { NULL, "export M --dtype fp16 -o O" },
    { NULL, "M --loss mse:y -o O" },
    { NULL, "M --loss mse:y --amp bf16 --lenient -o O" },
    { NULL, "explain M --loss mse:y" },
    { NULL, "M --batch 4 --emit ir -o O" },
    { "weights", "check S" },
    { "weights", "explain S" },
    { "weights", "diff S S" },
    { "weights", "S --emit ir -o O" },
    { "weights", "S --emit onnx-step -o O" },
    { "weights", "export S -o O" },
    { "weights", "M --loss mse:y --train w --optimizer adam --ema 0.9 --clip-norm 1 -o O" },
    { "weights",
      "train M --loss mse:y --train w --data x=x.npy --target x.npy --steps 1 --no-save --init w.safetensors" },
    { "weights", "train M --loss mse:y --train w --data x=x.npy --target x.npy --steps 1 --checkpoint O.ckpt" },
    { "layers", "M --loss mse:y --amp fp16 --optimizer adam --ema 0.9 --clip-norm 1 -o O" },
    { "layers", "M --loss mse:y --amp bf16 --batch 8 --accumulate 2 -o O" },
    { "layers", "explain M --loss mse:y --amp bf16 -v" },
    { "layers", "train M --loss mse:y --amp fp16 --data x=s.npy --target s.npy --steps 2 --checkpoint O.ckpt" },
    { "layers", "eval S --data x=s.npy --target s.npy" },
    { "layers", "export S -o O --verify x=s.npy,target=s.npy" },
    { "dimensions", "check M (--dim d#=2)" },
    { "dimensions", "check M (--shape p#:2)" },
    { "dimensions", "check M (--const p#=x.npy)" },
    { "outputs", "M -o O" },
    { "outputs", "M --loss mse:none -o O" },
    { "inputs", "run M --input x=x.npy (--input x#=x.npy)" },
    { "inputs", "diff M M (--input x#=x.npy)" },
    { "inputs", "export M --dtype fp16 --keep-io [x#,] -o O" },
    { "passed", "run M --input x=x.npy (--input p#=x.npy)" },
    { "small", "check M --config c.cfg" },
    { "small", "check M --limits l.cfg" },
    { "small", "M --loss mse:y --amp bf16 --amp-table t.amp -o O" },
    { "small", "M --loss mse:y (--group w1$:lr=2x) -o O" },
    { "small", "M --loss mse:y (--freeze w1$) -o O" },
    { "small", "M --loss mse:y --amp bf16 (--keep-fp32 h1$) -o O" },
    { "small", "eval M --loss mse:y --data x=a.npz:key=a1 --target x.npy" },
    { "small", "eval M --loss mse:y --data x=x.npy --target x.npy --init w.safetensors" },
    { "small", "eval M --loss mse:y --data x=x.npy --target x.npy --checkpoint ckpt" },
    { "small", "eval M --loss mse:y (--data x=x.npy)" },
    { "wide", "train M --loss mse:y --data x=wide.csv --target wide.csv --steps 1 --no-save" },
    { "wide", "eval M --loss mse:y --data x=n.npy --target n.npy" },
};

enum { MOST_WORDS = 8000, WORD = 64 };

/* Four times as many take so much more at most: n log n does less.  Where one in thirty instructions at n looks at pairs
 * it is more. */
static const double most = 4.4;

typedef struct Work {
    const char *qcc, *shape, *word;
    int pairs, failed;
} Work;

/* ---- one command line ---- */

typedef struct Words {
    char *argv[MOST_WORDS];
    int n;
} Words;

static char *copy(const char *text)
{
    char *p = strdup(text);
    if (!p)
        abort();
    return p;
}

static void add(Words *w, const char *word)
{
    static const char *const stands[][2] = { { "M", "model.onnx" }, { "S", "step.onnx" }, { "O", "out" } };
    for (size_t i = 0; i < COUNT(stands); i++)
        if (strcmp(word, stands[i][0]) == 0)
            word = stands[i][1];
    if (w->n + 2 > MOST_WORDS)
        abort();
    w->argv[w->n++] = copy(word);
}

static void with_number(char out[WORD], const char *word, int i)
{
    const char *mark = strchr(word, '#');
    if (mark)
        snprintf(out, WORD, "%.*s%d%s", (int)(mark - word), word, i, mark + 1);
    else
        snprintf(out, WORD, "%s", word);
}

static void add_many(Words *w, const char *part, size_t length, int n)
{
    char text[200], word[WORD];
    for (int i = 1; i < n; i++) {
        snprintf(text, sizeof text, "%.*s", (int)length, part);
        for (char *p = strtok(text, " "); p; p = strtok(NULL, " ")) {
            with_number(word, p, i);
            add(w, word);
        }
    }
}

static void add_joined(Words *w, const char *part, size_t length, int n)
{
    char text[WORD], word[WORD];
    Bytes all = { 0 };
    snprintf(text, sizeof text, "%.*s", (int)length, part);
    for (int i = 1; i < n; i++) {
        with_number(word, text, i);
        put(&all, word, strlen(word));
    }
    put(&all, "", 1);
    add(w, (const char *)all.p);
    free(all.p);
}

static void words_of(Words *w, const char *line, int n)
{
    while (*line) {
        char word[WORD];
        const bool many = *line == '(', joined = *line == '[';
        const size_t length = strcspn(line + (many || joined), many ? ")" : joined ? "]" : " ");
        snprintf(word, sizeof word, "%.*s", (int)length, line);
        if (many)
            add_many(w, line + 1, length, n);
        else if (joined)
            add_joined(w, line + 1, length, n);
        else
            add(w, word);
        line += length + (many || joined ? 2 : 0);
        line += *line == ' ';
    }
}

/* The exit code of a command line in a folder, by the program at argv[0]. */
static int carry_out(const char *folder, Words *w)
{
    int how;
    w->argv[w->n] = NULL;
    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) != 0 || !freopen("said", "w", stdout) || !freopen("said", "a", stderr))
            _exit(126);
        execvp(w->argv[0], w->argv);
        _exit(127);
    }
    waitpid(child, &how, 0);
    for (int i = 0; i < w->n; i++)
        free(w->argv[i]);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128;
}

static double counted(const char *folder)
{
    double total = 0;
    char text[1000];
    snprintf(text, sizeof text, "%s/count", folder);
    FILE *f = fopen(text, "r");
    while (f && !total && fgets(text, sizeof text, f))
        if (sscanf(text, "summary: %lf", &total) != 1)
            (void)sscanf(text, "totals: %lf", &total);
    if (f)
        fclose(f);
    return total;
}

static double instructions(const Work *w, const char *line, const char *folder, int n, int *status)
{
    static const char *const before[] = { "valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=count" };
    char text[200];
    Words words = { .n = 0 };
    snprintf(text, sizeof text, "cd %s && rm -rf count out out.*", folder);
    if (system(text) != 0)
        abort();
    for (size_t i = 0; i < COUNT(before); i++)
        add(&words, before[i]);
    add(&words, w->qcc);
    words_of(&words, line, n);
    add(&words, "--threads");
    add(&words, "1");
    *status = carry_out(folder, &words);
    return counted(folder);
}

/* ---- pairs ---- */

static const char *const folders[] = { "least", "few", "many" };

static int number(const Shape *s, size_t i)
{
    return i == 0 ? 2 : i == 1 ? s->n : 4 * s->n;
}

/* What two take is taken away from both: it is what every line takes. */
static void pair(Work *w, const Shape *s, const char *line)
{
    double work[3];
    int status[3];
    for (size_t i = 0; i < COUNT(folders); i++)
        work[i] = instructions(w, line, folders[i], number(s, i), &status[i]);
    const double few = work[1] - work[0], many = work[2] - work[0];
    const bool same = status[1] == status[2] && status[1] <= 4 && work[1] > 0;
    const bool good = same && (many <= most * few || many <= 0.1 * work[0]);
    w->pairs++;
    w->failed += !good;
    printf("%s%-10s %-60s %d %d  %8.2f M %8.2f M  x %.2f\n", good ? "" : "FAILED ", s->name, line, status[1], status[2],
           work[1] / 1e6, work[2] / 1e6, many / few);
}

/* Every folder has the model, the step that it compiles to, and the files beside it. */
static void prepare(const Work *w, const Shape *s)
{
    for (size_t i = 0; i < COUNT(folders); i++) {
        Words words = { .n = 0 };
        mkdir(folders[i], 0700);
        if (chdir(folders[i]) != 0)
            abort();
        write_file("model.onnx", s->model(number(s, i)));
        write_files(number(s, i));
        if (chdir("..") != 0)
            abort();
        add(&words, w->qcc);
        const bool scales = strcmp(s->name, "weights") == 0; /* of what goes in: normalization, unless they are named */
        words_of(&words, scales ? "M --loss mse:y --train w -o S" : "M --loss mse:y -o S", 0);
        if (scales || strcmp(s->name, "layers") == 0)
            carry_out(folders[i], &words);
    }
}

static void one_shape(Work *w, const Shape *s)
{
    prepare(w, s);
    for (size_t i = 0; i < COUNT(lines); i++)
        if ((lines[i].shape ? strcmp(lines[i].shape, s->name) == 0 : strcmp(s->name, "small") != 0) &&
            (!w->word || strstr(lines[i].line, w->word)))
            pair(w, s, lines[i].line);
    if (system("rm -rf least few many") != 0)
        abort();
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/qcc.work.XXXXXX";
    Work w = { .qcc = argc > 1 ? realpath(argv[1], NULL) : NULL,
               .shape = argc > 2 ? argv[2] : NULL,
               .word = argc > 3 ? argv[3] : NULL };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!w.qcc || !mkdtemp(folder) || chdir(folder) != 0)
        return 2;
    if (system("valgrind --version >version 2>/dev/null") != 0) {
        printf("skipped: there is no valgrind\n");
        return 77;
    }
    for (size_t i = 0; i < n_shapes; i++)
        if (!w.shape || strcmp(shapes[i].name, w.shape) == 0)
            one_shape(&w, &shapes[i]);
    printf("%d pairs, %d failed\n", w.pairs, w.failed);
    unlink("version");
    if (chdir("/") != 0 || rmdir(folder) != 0)
        return 2;
    return w.failed || !w.pairs;
}
