/* What a driver tells the shared object in the process under attack, and what that tells it: a block of memory that both
 * have. */
#ifndef TESTS_FAULT_ATTACK_H
#define TESTS_FAULT_ATTACK_H

/* The calls that can be struck.  Calls on files count when their path is relative, or their descriptor came of such a
 * path: the command is run in a folder of its own. */
#define TARGETS(_)                                                                                                     \
    _(open)     /* to read, or what is there to write */                                                               \
    _(create)   /* open with O_CREAT */                                                                                \
    _(read)     /* read, pread */                                                                                      \
    _(write)    /* write, pwrite */                                                                                    \
    _(sync)     /* fsync */                                                                                            \
    _(rename)   /* rename, renameat2 */                                                                                \
    _(close)    /* close, closedir */                                                                                  \
    _(remove)   /* unlink, rmdir */                                                                                    \
    _(reserve)  /* fallocate */                                                                                        \
    _(folder)   /* mkdir */                                                                                            \
    _(link)     /* symlink, link */                                                                                    \
    _(lock)     /* flock, fcntl's locks */                                                                             \
    _(look)     /* stat, lstat, fstat, access, readlink, realpath */                                                   \
    _(truncate) /* ftruncate */                                                                                        \
    _(list)     /* opendir, readdir */                                                                                 \
    _(say)      /* write to standard output */                                                                         \
    _(memory)   /* malloc, calloc, realloc, aligned_alloc */                                                           \
    _(thread)   /* pthread_create */                                                                                   \
    _(any)      /* each of those above that is a call on files or standard output */

#define TARGET_WORD(name) TARGET_##name,
typedef enum Target { TARGETS(TARGET_WORD) TARGET_COUNT } Target;
#undef TARGET_WORD

typedef enum Deed {
    DEED_NONE,
    DEED_FAIL,   /* answers -1 with the errno `value` */
    DEED_HALF,   /* reads or writes half of what is asked for */
    DEED_END,    /* reads nothing: the end of the file */
    DEED_TEAR,   /* writes half and ends the process */
    DEED_KILL,   /* ends the process */
    DEED_SIGNAL, /* sends it the signal `value`, then does the call */
} Deed;

enum { ATTACK_FD = 199 }; /* where the process finds the block */

typedef struct Attack {
    Target target;
    Deed deed;
    int value;
    int from_then_on; /* or once */
    long at;          /* the first is 1 */
    long seen[TARGET_COUNT], struck;
} Attack;

#endif
