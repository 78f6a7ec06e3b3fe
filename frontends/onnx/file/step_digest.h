/* The digest of a step's file: its last bytes are a property qcc.file.digest whose value is the SHA-256 of the whole
 * file, the 64 digits taken as zeros.  What a step trains with (graphs, options, first values, where external data lie)
 * is used as it was written, or not at all. */
#ifndef FRONTENDS_ONNX_FILE_STEP_DIGEST_H
#define FRONTENDS_ONNX_FILE_STEP_DIGEST_H

#include "base/heap.h"
#include "base/sha256.h"
#include "base/sink.h"
#include "frontends/onnx/file/spine.h"

enum { STEP_DIGEST_DIGITS = SHA256_TEXT - 1, STEP_DIGEST_BYTES = 21 + STEP_DIGEST_DIGITS };

/* A sink that hashes what passes through it. */
typedef struct DigestSink {
    Sink to;
    Sha256 sha;
} DigestSink;

/* Begins a file that goes to `to`; what it answers takes the bytes. */
Sink step_digest_begin(DigestSink *s, const Sink *to);

/* Puts the property, STEP_DIGEST_BYTES, through a sink that ends in that of `s`: the file ends here. */
Status step_digest_end(DigestSink *s, const Sink *sink);

typedef enum StepDigest { STEP_DIGEST_NONE, STEP_DIGEST_GOOD, STEP_DIGEST_DIFFERS } StepDigest;

/* Whether a file that was read ends in a digest of ours, and has the bytes that it was made of. */
Status step_digest_check(Spine *s, Diag *d, StepDigest *found);

#endif
