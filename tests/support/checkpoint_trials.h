/* Trials that a quick and a long test share: crashes replayed, processes killed. */
#ifndef TESTS_SUPPORT_CHECKPOINT_TRIALS_H
#define TESTS_SUPPORT_CHECKPOINT_TRIALS_H

#include "support/checkpoints.h"

/* Replays all crashes of one save of step 400 into a folder that holds 100, 200 (the best) and 300; the number of
 * states. */
int crash_folder(Context *c, int64_t width, int keep, bool best);

/* The same for one file that is replaced.  With `lying` syncs do nothing; the number of states that recovery could not
 * answer for, which is to be 0 otherwise. */
int crash_file(Context *c, int64_t width, bool lying, int *n_states);

/* Kills a process that saves without end, `times` times, at moments drawn from `seed`: nothing that it was told is
 * saved is ever lost. */
void kill_savers(Context *c, int times, uint32_t seed);

/* Kills a process at each call of one save. */
void kill_at_each_call(Context *c);

#endif
