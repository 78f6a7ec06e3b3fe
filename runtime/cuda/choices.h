/* Choices that are made by measuring, kept beside compiled kernels: a file for each question, so that whoever asks again is told the
 * same, whatever is measured then.
 *
 * What is kept stays: of two processes that measure at once the first one decides for both.  Where nothing can be kept nothing is
 * measured that decides: the answer is the first way, in that run and in the next. */
#ifndef RUNTIME_CUDA_CHOICES_H
#define RUNTIME_CUDA_CHOICES_H

#include "runtime/cuda/kernel_cache.h"

typedef struct Choices {
    KernelStore store;
    int measured;   /* and kept, so many of them, */
    double seconds; /* in that time */
} Choices;

/* What a way takes where nobody can say, which counts as slow; and where whoever measures failed, so that nothing is chosen. */
#define CHOICE_UNKNOWN (-1.0)
#define CHOICE_FAILED  (-2.0)

/* What is chosen: one of some ways to do the same. */
typedef struct Choice {
    const char *const *words; /* all that times depend on; the last is null */
    const Str *ways;          /* what each way is, as it is kept; no two are equal */
    int n;
    double (*seconds)(void *user, int way); /* that it takes, measured now */
    void *user;
} Choice;

/* Opens them in the folder of the cache, which there is. */
void choices_open(Choices *c, const KernelCache *cache, Diag *d, Arena *arena);

/* The way that was chosen: what is kept, or the fastest, which is kept then; the first where nothing can be kept, or what is kept is
 * none of them. */
int choice_make(Choices *c, const Choice *choice);

/* Ends what was begun: files that killed processes left go. */
void choices_settle(Choices *c);

#endif
