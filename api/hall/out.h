/* Where results go: a file that appears whole or not at all, a stream, or the host. */
#ifndef API_HALL_OUT_H
#define API_HALL_OUT_H

#include "api/hall/context.h"
#include "base/file.h"
#include "base/sink.h"
#include "frontends/onnx/file/weight_file.h"
#include "runtime/log/log.h"

/* What a stream or the host's function that takes no more bytes means. */
typedef enum OutLoss {
    OUT_FAILS,  /* an error */
    OUT_ENDS,   /* the same, but a function that says that its reader has left (EPIPE) is not told so */
    OUT_GOES_ON /* what is said is lost, and the work it tells of goes on; out_close answers IO */
} OutLoss;

typedef struct Out {
    qcc_context *cx;
    qcc_sink to;
    FileOut file;
    WeightFile weight_file; /* of a model that is written to it */
    bool is_file, is_model;
    int fd; /* of a stream; -1: none */
    OutLoss if_lost;
    int lost; /* errno of the first write that failed; 0: none did */
    uint64_t bytes;
    const char *notes; /* what its writer tells of it: lines with their ends; null: nothing */
    bool as_json;      /* results are objects, a line each; words that are none become {"event":"text"} */
    Text words;        /* of a line that is not whole */
    Cleanup cleanup;
} Out;

/* Opens a sink; "-" is standard output, and what is there but is no regular file is written to in place. */
Status out_open(Out *o, qcc_context *cx, const qcc_sink *sink);

/* Writes bytes. */
Status out_bytes(Out *o, const void *bytes, size_t n);

/* Writes what printf would print. */
Status out_printf(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Results as objects (--messages json): from now on, and whether they are. */
void out_speak_json(Out *o);
static inline bool out_is_json(const Out *o)
{
    return o->as_json;
}

/* Where results are objects, writes one; elsewhere nothing. */
Status out_event(Out *o, const char *event, const LogExtra *fields, size_t n);

/* Writes lines that are objects already. */
Status out_objects(Out *o, const Text *lines);

/* Ends it: a file, and what lies beside it, gets its name when `status`, which is passed on, is OK or MISMATCH; after an
 * error that was said and not handed up `status` is that one's. */
Status out_close(Out *o, Status status);

/* What may lie beside the model that is written here; null: nothing can. */
WeightFile *out_weight_file(Out *o);

/* The files with weights that a model which was written reads where they were: "reads w.bin (62.7 kB): 72.8 kB in all";
 * null: it reads none but its own data. */
const char *out_others(const Out *o);

/* What became of it, once it is closed: "m.onnx (10.1 kB) and m.onnx.0123456789abcdef.data (62.7 kB)". */
const char *out_told(const Out *o);

/* The same place as a sink of frontends. */
Sink out_sink(Out *o);

#endif
