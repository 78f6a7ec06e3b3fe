/* How much memory there is for this process. */
#ifndef BASE_MACHINE_MEMORY_H
#define BASE_MACHINE_MEMORY_H

#include <stdint.h>

/* Bytes: the machine's own, or less where a control group or the process's address space is bounded; 0: nothing is known.
 * `root` stands before /proc and /sys; "" for those of the machine, which then counts itself too. */
uint64_t machine_memory(const char *root);

#endif
