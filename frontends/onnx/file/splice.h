/* A file's own bytes with some of them replaced.
 *
 * Everything that no edit names is copied as it is: field order, unknown fields, packing.  Where an edit changes the
 * size of the messages around it, their length prefixes are written anew; nothing else is.  The file is never held in
 * memory. */
#ifndef FRONTENDS_ONNX_FILE_SPLICE_H
#define FRONTENDS_ONNX_FILE_SPLICE_H

#include "base/sink.h"
#include "frontends/onnx/file/wire.h"

/* Replaces [offset, offset + length) by head and then either `bytes` or what `write` puts.  The range is made of whole
 * fields of one message, or is empty and lies between two of them, or is length and value of one bytes field. */
typedef struct Edit {
    uint64_t within; /* where the body of the innermost message around the range begins; 0: the whole file */
    uint64_t offset, length;
    uint8_t head[12];
    uint8_t n_head;
    uint64_t n;        /* of what follows the head */
    const void *bytes; /* the n bytes, or null: `write` puts exactly n */
    Status (*write)(void *user, const Sink *sink);
    void *user;
} Edit;

typedef struct Splice {
    Source *source;
    const ProtobufCMessageDescriptor *type; /* of the outermost message */
    const Limits *limits;
    Diag *diag;
    Arena *arena;      /* scratch */
    const Edit *edits; /* in any order; they must not overlap */
    size_t n_edits;
} Splice;

/* An edit that gives the bytes field whose value lies at [offset, offset + length), inside the message whose body
 * begins at `within`, a new value of n bytes. */
Edit edit_value(uint64_t within, uint64_t offset, uint64_t length, uint64_t n);

/* Copies the source with its edits to the sink; `*size` (may be null) gets the number of bytes. */
Status splice_write(const Splice *s, const Sink *sink, uint64_t *size);

/* The number of bytes that splice_write would write. */
Status splice_size(const Splice *s, uint64_t *size);

/* ---- what the skeleton is made with ---- */

enum { CUT_HEAD = 40 };

/* One replacement in the file, whatever message it is in: [at, at + length) becomes `head` and then what `edit` (may be
 * null) says. */
typedef struct Cut {
    uint64_t at, length;
    const Edit *edit;
    uint8_t head[CUT_HEAD];
    uint8_t n_head;
} Cut;

typedef struct CutLevel {
    uint64_t body;   /* where the message begins */
    uint64_t change; /* of its size so far, modulo 2^64 */
    size_t slot;     /* its length prefix among the cuts */
    uint8_t n_extra; /* bytes that follow the prefix */
} CutLevel;

/* Cuts in file order, collected while a walk goes by. */
typedef struct Cuts {
    Arena *arena;
    Cut *cut;
    size_t n, cap;
    CutLevel *level; /* the messages around, outermost first */
    size_t n_levels, cap_levels;
} Cuts;

/* No cuts yet, at the outermost message. */
void cuts_open(Cuts *c, Arena *arena);

/* Adds a cut inside the current message and accounts for the size of what replaces it. */
Cut *cuts_add(Cuts *c, uint64_t at, uint64_t length, const uint8_t *head, size_t n_head, const Edit *edit);

/* Makes the last cut `more` bytes longer. */
void cuts_extend(Cuts *c, uint64_t more);

/* Goes into a message; n_extra bytes are put at the beginning of its body. */
void cuts_enter(Cuts *c, const WireItem *item, const uint8_t *extra, size_t n_extra);

/* Comes out again: the length prefix is settled. */
void cuts_leave(Cuts *c, const WireItem *item);

/* The size of the file once cut. */
uint64_t cuts_size(const Cuts *c, uint64_t size);

/* Copies the source with the cuts to the sink. */
Status cuts_write(const Cuts *c, Source *source, Diag *diag, const Sink *sink);

#endif
