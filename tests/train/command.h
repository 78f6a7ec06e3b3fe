/* What the programs of tests/train share: they run the command itself, as a process, in a folder of their own. */
#ifndef TESTS_TRAIN_COMMAND_H
#define TESTS_TRAIN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Goes into an empty folder of its own; `qcc` is the path of the program under test. */
void begin(const char *qcc);

/* Removes the folder; the exit status of the test. */
int finish(void);

/* Counts a failed check and says so. */
void check_at(const char *file, int line, bool good, const char *format, ...) __attribute__((format(printf, 4, 5)));
#define check(good, ...) check_at(__FILE__, __LINE__, (good), __VA_ARGS__)

/* Runs `qcc ARGUMENTS` by sh; out.txt and err.txt get what it says.  Its exit code, or 128 and the signal. */
int qcc(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, not waited for; qcc_wait gives the code. */
pid_t qcc_start_process(const char *format, ...) __attribute__((format(printf, 1, 2)));
int qcc_wait(pid_t child);

/* Runs any command line, in which "$QCC" is the program; its exit code. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The whole of a file, 0-terminated; to be freed.  Null when there is none. */
char *file_text(const char *path, size_t *n);

/* Whether two files are there and hold the same bytes. */
bool same_files(const char *a, const char *b);

/* Whether a file holds a text. */
bool file_has(const char *path, const char *text);

/* How often a file holds a text. */
int file_count(const char *path, const char *text);

/* Whether a path is there. */
bool is_there(const char *path);

/* Files to train on. */
void write_text(const char *path, const char *text);
void write_npy(const char *path, const char *descr, const void *values, size_t size, int rank, const int64_t *dims);

/* Deterministic numbers in [-1, 1). */
double draw(uint64_t *state);

/* x.npy f32[n,8] and y.npy i64[n] with four classes that x tells, and the models toy.qir (two layers) and rich.qir (with
 * batch normalization and dropout). */
void write_toy(int64_t n);

void sleep_ms(int ms);

#endif
