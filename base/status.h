/* How every fallible function answers.  The values are the exit codes of the command. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

/* Where the compiler can tell (clang): an answer that nobody looks at is an error, whichever function gave it; one that is
 * of no use, because the failure was reported and the caller goes on, is cast to void. */
#ifdef __clang__
#define ANSWER __attribute__((warn_unused_result))
#else
#define ANSWER
#endif

typedef enum ANSWER Status {
    OK = 0,
    MISMATCH = 1,    /* verification failed, training diverged */
    USAGE = 2,       /* the caller's words are off */
    INVALID = 3,     /* invalid model or data */
    UNSUPPORTED = 4, /* an operator or type we cannot serve */
    IO = 5,
    DEVICE = 6,
    INTERNAL = 7, /* our own mistake */
    NO_MEMORY = 8,
    BUSY = 9,    /* a verb called from a callback */
    FORKED = 10, /* a verb called in a forked child */
    INTERRUPTED = 130,
} Status;

/* Passes a failure on to the caller; the message was already reported where it arose. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const Status try_status_ = (call);                                                                             \
        if (try_status_ != OK)                                                                                         \
            return try_status_;                                                                                        \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
