/* What a folder of checkpoints holds: names with numbers, and links. */
#ifndef RUNTIME_CHECKPOINT_FOLDER_H
#define RUNTIME_CHECKPOINT_FOLDER_H

#include "runtime/checkpoint/checkpoint.h"

#define CHECKPOINT_LOCK ".qcc-lock"

typedef struct CheckpointFile {
    uint64_t step;
    const char *name; /* in the folder */
} CheckpointFile;

/* The name of the file of a step; `run` is added where another run has the name, else null. */
const char *folder_name(Arena *arena, uint64_t step, const char *run);

/* The step that a name stands for; false when it is no name of a checkpoint. */
bool folder_step(const char *name, uint64_t *step);

/* The files that have such names, highest step first; none when there is no folder. */
Status folder_list(Arena *arena, Diag *diag, const char *folder, CheckpointFile **list, size_t *n);

/* The name that a link in the folder points to; null when there is none, or it points elsewhere. */
const char *folder_link(Arena *arena, const char *folder, const char *link);

/* Lets a link point to a file of the folder; that it cannot is a warning, links are hints. */
Status folder_point(const Disk *disk, Arena *arena, Diag *diag, const char *folder, const char *link, const char *name);

/* Removes temporary files and links of processes that are no more; with `alone`, of every process: nobody else writes
 * here. */
void folder_clear(const Disk *disk, Arena *arena, const char *folder, bool alone);

#endif
