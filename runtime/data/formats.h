/* The forms of files, between runtime/data/samples.c and those who read them. */
#ifndef RUNTIME_DATA_FORMATS_H
#define RUNTIME_DATA_FORMATS_H

#include "runtime/data/npy.h"
#include "runtime/data/samples.h"

enum { OPENING_HEAD = 512 };

/* A file that is being opened. */
typedef struct Opening {
    const SamplesQuery *q;
    Diag *d;
    Place place;
    Samples *s;
    Arena scratch; /* until it is open */
    uint8_t head[OPENING_HEAD];
    size_t n_head;
} Opening;

/* Each opens its form into o->s: type, byte order and where the elements are. */
Status open_npy(Opening *o);
Status open_npz(Opening *o);
Status open_idx(Opening *o);
Status open_idx_gz(Opening *o);
Status open_csv(Opening *o);
Status open_tokens(Opening *o);
Status open_raw(Opening *o);
Status open_proto(Opening *o);
Status open_safetensors(Opening *o);

/* Whether the bytes are an IDX file of exactly this size; whether they are tokens with a head. */
bool idx_is(const uint8_t *head, size_t n, uint64_t size);
bool tokens_is(const uint8_t *head, size_t n);

/* An array whose .npy form is in `file`. */
Status open_npy_in(Opening *o, const Bytes *file);

/* Names the file as one whose content is wrong. */
Status opening_fail(Opening *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory of the source for n bytes; null after a report that the limit data_bytes is reached. */
void *opening_hold(Opening *o, uint64_t n);

/* Sets type and elements; refuses what is no array of samples, or longer than `elements`. */
Status opening_array(Opening *o, DType dtype, int rank, const int64_t *dims, const Bytes *elements);

/* Finds which of n arrays is meant: the key, the only one, or the one named like the input.  `names` end with `end`,
 * which may be left out. */
Status opening_choose(Opening *o, size_t n, const char *const *names, const char *end, size_t *chosen);

/* Reports archives of PyTorch. */
Status opening_torch(Opening *o);

#endif
