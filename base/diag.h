/* What is said to the user: one shape, always with a place, always once.
 *
 *     FILE: PLACE: what is wrong: got and wanted
 *       at: another place
 *       try: text that can be pasted
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/text.h"

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_REMARK, SEVERITY_NOTE } Severity;

/* Where: every part may be absent (null, 0, -1). */
typedef struct Place {
    const char *file;   /* as the user wrote it */
    const char *where;  /* "node 17 /fc/Gelu", "initializer w", "graph.node[12]" */
    int64_t byte;       /* offset in a binary file, -1 = none */
    int line, column;   /* of a text file, from 1; 0 = none */
    const char *source; /* the line of text, for the caret */
} Place;

#define NOWHERE ((Place){ .byte = -1 })

typedef struct Diag Diag;
struct FileSet;

typedef struct Message {
    Diag *diag;
    Severity severity;
    Status status; /* of an error */
    Place place;
    const char *topic; /* of a remark: "fold", "amp", ... */
    const char *text;
    const char **at;
    size_t n_at, cap_at, n_at_all;
    const char **try;
    size_t n_try, cap_try;
} Message;

/* A sink of messages. */
struct Diag {
    Arena *arena;     /* messages live here */
    const char *file; /* default file of places without one */
    void (*report)(void *user, const Message *message);
    void *user;
    bool warnings_are_errors;
    size_t n_errors, n_warnings;
    Status first;          /* of the first error */
    struct FileSet *files; /* what is read and written meanwhile (base/file_set.h); null: nobody asks */
};

enum { DIAG_MOST_AT = 20 };

/* An empty sink; a null `report` swallows messages but counts them. */
void diag_open(Diag *d, Arena *arena, void (*report)(void *user, const Message *message), void *user);

/* Reports an error that makes the input invalid; returns INVALID. */
Status fail(Diag *d, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reports an error of another kind; returns `status`. */
Status fail_as(Diag *d, Status status, Place place, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reports a warning; returns OK, or INVALID where warnings are errors. */
Status warn(Diag *d, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reports a decision that a user may question. */
void remark(Diag *d, const char *topic, Place place, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Begins a message to which at: and try: lines are added before it is sent. */
Message *message_new(Diag *d, Severity severity, Status status, Place place, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Adds a place; beyond DIAG_MOST_AT they are only counted. */
void message_at(Message *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a line that can be pasted. */
void message_try(Message *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports it; returns its status. */
Status message_send(Message *m);

/* Prints a message in its one shape, names escaped. */
void message_print(Text *out, const Message *m);

#endif
