/* Command lines of every verb, as a host gives them to qcc_command: what the tests of exhausted memory and of growth share. */
#ifndef TESTS_FAULT_COMMANDS_H
#define TESTS_FAULT_COMMANDS_H

#include "fault/world.h"

typedef struct CommandText {
    const char *text;  /* words between blanks; MODEL, TESTS/.. and @/.., which is the folder, are replaced */
    qcc_status wanted; /* where nothing fails */
    qcc_status also;   /* what it may answer for want of memory, beside that there is none; 0: nothing */
} CommandText;

extern const CommandText command_texts[];
extern const size_t n_command_texts;

/* Writes the files that the lines read into the folder; false when it cannot. */
bool commands_prepare(World *w, const char *tests);

/* Runs one line in the context of the world. */
qcc_status command_do(World *w, const char *tests, const CommandText *line);

/* Looks whether the folder holds a file that was not written to its end. */
bool commands_left_halves(const World *w);

#endif
