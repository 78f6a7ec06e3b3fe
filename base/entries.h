/* What a folder holds. */
#ifndef BASE_ENTRIES_H
#define BASE_ENTRIES_H

#include "base/memory.h"

#include <stddef.h>

/* Shows every name in a folder but "." and "..", in the order of the file system, at most `most` of them: 0, an errno,
 * or EOVERFLOW where there are more.  A jump out of `see` closes the folder. */
int entries_each(Memory *memory, const char *folder, size_t most, void (*see)(void *user, const char *name),
                 void *user);

#endif
