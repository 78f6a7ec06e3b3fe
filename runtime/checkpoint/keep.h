/* Which checkpoints of a folder stay. */
#ifndef RUNTIME_CHECKPOINT_KEEP_H
#define RUNTIME_CHECKPOINT_KEEP_H

#include "runtime/checkpoint/checkpoint.h"

/* Notes that a file of the folder was found whole. */
void keep_note(CheckpointTarget *t, const char *name);

/* Deletes all files but the one just saved, whosever they are, and the link to the best one, with the same warnings. */
Status keep_alone(const CheckpointTarget *t, Arena *scratch, const char *just_saved);

/* Deletes the files of the target's own run that are more than wish.keep whole ones, newest counted first; those of
 * `just_saved` and of the best step stay.  What cannot be deleted is a warning. */
Status keep_newest(CheckpointTarget *t, Arena *scratch, const char *just_saved, uint64_t best_step);

#endif
