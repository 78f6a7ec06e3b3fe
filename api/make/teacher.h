/* The model of --teacher, read for a step. */
#ifndef API_MAKE_TEACHER_H
#define API_MAKE_TEACHER_H

#include "api/make/step.h"

/* Reads the teacher that a step's recipe names, if any: `g` is the model as it arrived, its dimensions bound.  A step
 * that is made again opens no file: it has no teacher then, which is a warning, unless that is the model itself. */
Status step_read_teacher(qcc_step *s, const CommandLine *line, Graph *g);

/* What stands for the value of --teacher in the identity of a step: its settings, and the content of what it names. */
const char *step_teacher_identity(qcc_step *s);

/* Gives back the file that a step's teacher is read from. */
void step_drop_teacher(qcc_step *s);

/* "self: softmax at temperature 4, 0.5 of the loss". */
const char *step_teacher_words(Arena *arena, const qcc_step *s);

#endif
