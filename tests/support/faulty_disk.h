/* A disk (base/disk.h) that fails when it is told to. */
#ifndef TESTS_SUPPORT_FAULTY_DISK_H
#define TESTS_SUPPORT_FAULTY_DISK_H

#include "testing.h"

#include <errno.h>

#include "base/disk.h"

/* The call number `at` fails with `error`, and with `for_good` every later one as well. */
typedef struct Faulty {
    Disk disk;
    int calls, at, error;
    bool for_good;
    int failed_sync; /* the descriptor whose sync failed; -1 */
    int flips;       /* so many reads give back a changed byte */
    bool removes;    /* a call that removes failed: what it was to remove may be there */
} Faulty;

/* Opens one over the real disk. */
void faulty_open_disk(Faulty *f, int at, int error, bool for_good);

/* Lets what makes folders and removes files fail, too. */
void faulty_folders(Faulty *f);

/* Files that this process has open. */
int descriptors(void);

#endif
