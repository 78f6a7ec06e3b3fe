/* Stored models on their way through the library, and what is kept of them for other programs to say. */
#ifndef TESTS_SUPPORT_STORED_H
#define TESTS_SUPPORT_STORED_H

#include "qcc/qcc.h"
#include "testing.h"

/* One of them. */
typedef struct Stored {
    Context c;
    const char *path, *name; /* the file's; it without folder and ending */
    const char *how;         /* what is done with it, for messages and names of files; null: one thing only */
    const char *folder;      /* where what is written goes */
} Stored;

/* Makes a folder anew, empty. */
void stored_folder(const char *folder);

/* Visits each file of the source tree that fits a pattern ("/tests/data/torch/" and so on), guarded; how many went wrong.
 * QCC_EXPORT=WORD leaves those whose name holds the word.  `*seen` grows by the number of files. */
int stored_each(const char *pattern, const char *how, const char *folder, Status (*visit)(void *stored), size_t *seen);

/* FOLDER/NAME.HOW and an ending. */
const char *stored_path(Stored *s, const char *end);

/* Errors of a context whose user is a Stored. */
void stored_report(void *user, const qcc_message *m);

/* Values of an input, drawn from its name; whole numbers are below `most`. */
qcc_tensor stored_draw(Stored *s, const char *name, const Type *type, int64_t most);

/* What the library gave, as a tensor: it stays where it is. */
const Tensor *stored_tensor(Stored *s, const qcc_tensor *q);

/* A line for the scripts of tests/data: "in x float32 2x3 0.5 ..". */
void stored_say(Stored *s, Text *t, const char *kind, const char *name, const qcc_tensor *x);

/* Keeps such lines in stored_path(s, ".values"). */
void stored_keep(Stored *s, const Text *t);

/* Casts of a model's own. */
int stored_casts(Graph *g);

#define STORED_SAY(s, ...)                                                                                             \
    (print_error("%s%s%s: ", (s)->name, (s)->how ? " " : "", (s)->how ? (s)->how : ""), print_error(__VA_ARGS__))

#define MUST(k, call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != QCC_OK) {                                                                                        \
            STORED_SAY((k)->s, "%s\n", #call);                                                                         \
            assert_int_equal(QCC_OK, QCC_INTERNAL);                                                                    \
        }                                                                                                              \
    } while (0)

#define HOLDS(k, condition, ...)                                                                                       \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            STORED_SAY((k)->s, __VA_ARGS__);                                                                           \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

#endif
