#include "fault/attack_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fault/attack_run.h"
#include "fault/attack_tree.h"

#define TRAIN "train m.onnx --data x.npy --target y.npy --batch 4 --progress none --checkpoint run --gradients g.npz "

typedef struct Saying {
    const char *command;
    Target target;
    Deed deed;
    int value;
    bool lasts;
    int code;
    const char *words; /* said when the fault is at one of the calls */
} Saying;

static const char *const before[] = { TRAIN "--steps 4 --every 2", NULL };

static const Saying sayings[] = {
    { "run e.onnx --input x=x.npy", TARGET_open, DEED_FAIL, EIO, false, 5,
      ".data: the folder cannot be opened: Input/output error" },
    { "run m.onnx --input x=x.npy", TARGET_read, DEED_FAIL, EIO, false, 5, "m.onnx: byte" },
    { "run m.onnx --input x=x.npy", TARGET_memory, DEED_FAIL, ENOMEM, true, 7, "qcc: cannot start: no memory" },
    { "export s.onnx --checkpoint a.safetensors -o d.onnx", TARGET_open, DEED_FAIL, EACCES, false, 5,
      "a.safetensors: cannot be opened: Permission denied" },
    { TRAIN "--steps 6 --resume", TARGET_link, DEED_FAIL, ENOSPC, false, 0,
      "run/last: warning: cannot be made to point to step-00000006.safetensors: No space left on device" },
    { TRAIN "--steps 6 --every 1 --keep 2 --resume", TARGET_remove, DEED_FAIL, EACCES, true, 0,
      "run/step-00000002.safetensors: warning: is old and cannot be removed: Permission denied" },
    { TRAIN "--steps 6 --every 1 --keep 2 --resume", TARGET_list, DEED_FAIL, EIO, true, 0,
      "run: warning: old checkpoints stay, the folder cannot be read: Input/output error" },
    { TRAIN "--steps 6 --resume", TARGET_list, DEED_FAIL, EIO, false, 5, "run: cannot be read: Input/output error" },
    { TRAIN "--steps 6 --resume", TARGET_open, DEED_FAIL, EIO, false, 0,
      "run/step-00000004.safetensors: warning: cannot be opened: Input/output error: passed over for "
      "run/step-00000002.safetensors" },
    { TRAIN "--steps 6 --resume", TARGET_open, DEED_FAIL, EIO, true, 5,
      "run: none of its 2 checkpoints can be read and is whole" },
    { TRAIN "--steps 4 --resume", TARGET_any, DEED_NONE, 0, false, 0,
      "--gradients: g.npz is not written, this run made no step" },
};

/* Whether it is said for a fault at one of the calls. */
static bool is_said(const Saying *s, const Tree *start)
{
    bool said = false, more = true;
    for (long at = 1; more && !said; at++) {
        Outcome o;
        const Attack a = {
            .target = s->target, .deed = s->deed, .value = s->value, .from_then_on = s->lasts, .at = at
        };
        attack_run(s->command, &a, &o);
        more = o.attack.struck && s->deed != DEED_NONE;
        said = o.code == s->code && strstr(o.err, s->words);
        outcome_drop(&o);
        tree_write(start, ".");
    }
    return said;
}

/* Commands that read JSON, whose parser may lose characters where memory lacks: each request fails in turn. */
static int starve(const Tree *start)
{
    static const char *const commands[] = { "eval s.onnx --data x.npy --target y.npy --checkpoint a.safetensors",
                                            TRAIN "--steps 4 --resume --log log.jsonl" };
    enum { NO_MEMORY = 7 };
    int wrong = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bool more = true;
        for (long at = 1; more; at++) {
            Outcome o;
            const Attack a = { .target = TARGET_memory, .deed = DEED_FAIL, .value = ENOMEM, .at = at };
            attack_run(commands[i], &a, &o);
            more = o.attack.struck;
            if (o.code != 0 && o.code != NO_MEMORY) {
                printf("qcc %s: memory %ld: exit %d, %s", commands[i], at, o.code, o.err);
                wrong++;
            }
            outcome_drop(&o);
            tree_write(start, ".");
        }
    }
    return wrong;
}

int attack_words(void)
{
    enum { N = sizeof sayings / sizeof *sayings };
    static const Attack none = { .target = TARGET_COUNT };
    Tree start;
    int failed = 0;
    for (const char *const *line = before; *line; line++) {
        Outcome o;
        attack_run(*line, &none, &o);
        failed += o.code != 0;
        outcome_drop(&o);
    }
    tree_read(&start, ".");
    for (int i = 0; i < N; i++)
        if (!is_said(&sayings[i], &start)) {
            printf("qcc %s: never says %s\n", sayings[i].command, sayings[i].words);
            failed++;
        }
    failed += starve(&start);
    tree_drop(&start);
    printf("%d sayings, %d failed\n", N, failed);
    return failed;
}
