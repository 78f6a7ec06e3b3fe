/* A file that says: this folder is being written to.  The lock goes with the process that held it, however it ended. */
#ifndef BASE_FILE_LOCK_H
#define BASE_FILE_LOCK_H

#include "base/diag.h"

typedef struct FileLock {
    int fd;    /* -1: none is held */
    bool held; /* false with a file: the file system knows no locks */
} FileLock;

/* Takes the lock, making the file where there is none; IO, naming the process, when another has it. */
Status file_lock(FileLock *lock, Diag *diag, const char *path);

/* Gives it back; the file stays. */
void file_unlock(FileLock *lock);

enum { FOLDER_LOCK_SECONDS = 10 };

/* Locks a folder itself, for as long as names in it change together, and waits so long for who has it: a descriptor;
 * -1 where that cannot be had, which is no failure. */
int folder_lock(const char *folder);

/* Gives it back; -1 is none. */
void folder_unlock(int lock);

#endif
