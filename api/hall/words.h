/* Words for quantities and operators. */
#ifndef API_HALL_WORDS_H
#define API_HALL_WORDS_H

#include "ir/graph.h"
#include "ops/card/words.h"

/* "25.5 MB", "25.5 M". */
const char *bytes_text(Arena *arena, uint64_t bytes);
const char *count_text(Arena *arena, uint64_t n);

/* "25,623" */
const char *grouped(Arena *arena, int64_t n);

/* "1.25 s", "3.07 ms", "12 us". */
const char *seconds_text(Arena *arena, double s);

/* "0.25": the fewest digits that read back as x. */
const char *number_text(Arena *arena, double x);

/* A name from a file as it may be printed: control characters and ill-formed UTF-8 escaped, long ones cut. */
const char *name_text(Arena *arena, const char *name);

/* "  loss ": the word that a line of an answer begins with, up to where what it says stands. */
void text_label(Text *t, const char *word);

/* The exit codes of the command, and when it ends with them. */
typedef struct ExitCode {
    Status code;
    const char *when;
} ExitCode;

extern const ExitCode exit_codes[];
extern const size_t n_exit_codes;

/* When the command ends with `status`. */
const char *exit_text(Status status);

#endif
