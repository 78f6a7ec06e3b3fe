/* What tests of checkpoints share: a folder, states, a target, a reader. */
#ifndef TESTS_SUPPORT_CHECKPOINTS_H
#define TESTS_SUPPORT_CHECKPOINTS_H

#include "testing.h"

#include "runtime/checkpoint/checkpoint.h"

/* Fails with a formatted message. */
#define check_that(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error(__VA_ARGS__);                                                                                  \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

enum { N_STATES = 5 };

static const char run_a[] = "00000000000000aa", run_b[] = "00000000000000bb";

/* A folder under the working folder, empty. */
const char *new_folder(Context *c);

/* The same in memory, where there is such a place. */
const char *new_memory_folder(Context *c);

/* Removes a folder and what is in it. */
void remove_folder(const char *path);

/* How many names a folder has, `.` and `..` apart. */
int count_names(const char *folder);

/* The bytes of a file. */
Str whole_file(Context *c, const char *path);

/* Writes a file. */
void put_bytes(const char *path, const void *bytes, size_t n);

/* Turns the last bit of a file. */
void damage(Context *c, const char *path);

/* States whose values follow from the step: f32, f64, bool, i64 and i4, in an order that is not that of the file. */
NamedTensor *states_at(Context *c, uint64_t step, int64_t width);

/* Where a run stands after `step` steps. */
CheckpointInfo info_at(uint64_t step);

/* A target over a folder or a file; a null disk never waits, for tests that are not about crashes. */
Status open_target(Context *c, CheckpointTarget *t, const char *path, const char *run, int keep, const Disk *disk);

/* Saves what states_at says. */
Status save_at(Context *c, CheckpointTarget *t, uint64_t step, int64_t width, bool best);

/* Loads and compares all bits with states_at; the step, or 0 when there is nothing. */
uint64_t load_step(Context *c, const char *path, int64_t width);

/* Loads without comparing. */
Status load_from(Context *c, const char *path, int64_t width, CheckpointLoaded *loaded);

/* The path of a step in a folder. */
const char *step_path(Context *c, const char *folder, uint64_t step);

#endif
