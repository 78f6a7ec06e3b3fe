/* Temporary files that a process left when it was killed: OUTPUT.tmp-PID-N beside OUTPUT.
 *
 * Whoever writes keeps its file locked (base/disk.c), so a number that another process has by now, or has in another
 * container, says nothing by itself.  Files of other users, and what is no regular file, are never touched. */
#ifndef BASE_LEFTOVERS_H
#define BASE_LEFTOVERS_H

#include "base/arena.h"
#include "base/disk.h"

enum {
    LEFTOVERS_NAMES = 65536, /* of a folder, that are looked at */
    LEFTOVERS_SECONDS = 60   /* since it was written to, before a file goes whose process number is in use */
};

typedef struct Leftovers {
    const Disk *disk;
    const char *folder;
    const char *stem;                  /* the output whose temporaries they are; null: `is_stem` says */
    bool (*is_stem)(const char *stem); /* whether an output has such a name */
    bool links;                        /* symbolic links may be temporaries too, of processes that are no more */
    bool alone;                        /* nobody else writes here: all of them are left over */
} Leftovers;

/* Removes them.  What cannot be looked at or removed stays, and is no failure. */
void leftovers_clear(const Leftovers *l, Arena *arena);

/* The same for the output at `path`. */
void leftovers_clear_of(const Disk *disk, Arena *arena, const char *path);

/* Whether a name is that of a temporary file for `stem`, and of which process. */
bool leftovers_name(const char *name, const char *stem, long *pid);

/* Whether nobody writes a temporary file any more. */
bool leftovers_abandoned(const char *path, long pid);

#endif
