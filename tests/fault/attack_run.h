/* Runs the command, whole or under attack, in a folder that lives in memory where there is one. */
#ifndef TESTS_FAULT_ATTACK_RUN_H
#define TESTS_FAULT_ATTACK_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "fault/attack.h"

typedef struct Outcome {
    int code;        /* exit code; 128 and the signal that ended it */
    bool ended;      /* by a signal */
    bool hangs;      /* and was ended for it */
    Attack attack;   /* with what was counted */
    char *out, *err; /* what it said, 0-terminated */
    size_t n_out;
} Outcome;

/* Makes the folder and goes there. */
void attack_begin(const char *qcc, const char *interposer);

/* Removes the folder. */
void attack_finish(void);

/* Runs a line of words with a space between them; what it said is to be given back. */
void attack_run(const char *line, const Attack *attack, Outcome *outcome);

/* Gives back what it said. */
void outcome_drop(Outcome *o);

#endif
