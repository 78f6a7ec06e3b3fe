/* What a disk may hold after a crash: the calls of a save are recorded, then every state that they allow is laid out in
 * a folder.
 *
 * Bytes written since the last sync of a file may be there or not, each write by itself, the last one torn at 512
 * bytes; room that was reserved may hold zeros.  Names given, moved or removed since the last sync of the folder may be
 * there or not, each by itself. */
#ifndef TESTS_SUPPORT_CRASHES_H
#define TESTS_SUPPORT_CRASHES_H

#include "base/disk.h"
#include "base/map.h"

typedef enum CallKind {
    CALL_CREATE,
    CALL_RESERVE,
    CALL_WRITE,
    CALL_SYNC,
    CALL_RENAME,
    CALL_REMOVE,
    CALL_POINT,
    CALL_SYNC_FOLDER
} CallKind;

typedef struct DiskCall {
    CallKind kind;
    int inode;
    const char *from, *to; /* names without the folder */
    bool replace;
    const char *bytes;
    size_t n;
    uint64_t offset;
} DiskCall;

enum { MOST_CALLS = 256, MOST_FILES = 128 };

/* Records what passes through `disk`, which is a copy of disk_real with other functions. */
typedef struct Recorder {
    Disk disk;
    Arena *arena;
    DiskCall list[MOST_CALLS];
    int n;
    int inode_of[MOST_FILES]; /* by descriptor; -1 */
    int n_inodes;
} Recorder;

/* Begins a recording. */
void recorder_open(Recorder *r, Arena *arena);

/* What the folder held before: names with bytes, or links. */
typedef struct Before {
    const char *name, *bytes, *link;
    size_t n;
} Before;

/* Lays out every state after every prefix of the recording in `folder` (which is cleared each time), and calls `look`
 * with the number of calls that were made.  With `lying`, syncs do nothing.  Returns the number of states. */
int crashes_replay(const Recorder *r, const Before *before, int n_before, const char *folder, bool lying,
                   void (*look)(void *user, int calls), void *user);

#endif
