/* What people write after --data, --target and --fill:
 *
 *     [NAME=]FILE[:opt,..]     a file, or - for a stream of .npy records
 *     [NAME=]next              the tokens of the input, one further
 *     [NAME=]same:INPUT        what that input is given
 *     [NAME=]none              nothing
 *     NAME=VALUE, NAME=range   inputs that are no data
 */
#ifndef RUNTIME_DATA_SPEC_H
#define RUNTIME_DATA_SPEC_H

#include "base/diag.h"
#include "ir/type.h"

/* clang-format off */
/*     name      what it wants                                                              */
#define DATA_OPTIONS(_)                                                                       \
    _( shape,    "dimensions of a sample: shape=3x32x32"                                    ) \
    _( layout,   "nhwc (channels last) or nchw: layout=nhwc"                                ) \
    _( scale,    "a number or a quotient: scale=1/255"                                      ) \
    _( mean,     "a number, or one for each channel: mean=0.485,0.456,0.406"                ) \
    _( std,      "a number that is not 0, or one for each channel: std=0.229,0.224,0.225"   ) \
    _( column,   "names or numbers of columns: column=label, column=1..784"                 ) \
    _( header,   "lines of a .csv file, or bytes of a raw one, before the data: header=1"   ) \
    _( rows,     "the first sample and the one behind the last: rows=0:1000, rows=1000:"    ) \
    _( key,      "the name of an array: key=x"                                              )
/* clang-format on */

typedef enum DataOption {
#define ENUMERATOR(name, wants) DATA_##name,
    DATA_OPTIONS(ENUMERATOR)
#undef ENUMERATOR
        DATA_dtype, /* u8, i64, f32 ..: written without a name */
    DATA_static,    /* written alone: the array is no samples, every step is given the whole of it */
    DATA_OPTION_COUNT
} DataOption;

typedef enum DataKind { DATA_FILE, DATA_NEXT, DATA_SAME, DATA_NONE } DataKind;

enum { DATA_MOST_LIST = 4096 }; /* numbers of mean and std, columns */

typedef struct DataSpec {
    const char *flag; /* --data, --target, ..: for messages */
    bool target;      /* the flag ends in `target` */
    const char *text; /* FILE[:opt,..] as it was written, without NAME= */
    const char *name; /* of the input; null: not said */
    DataKind kind;
    const char *path; /* of a file */
    const char *same; /* the input that is meant */
    unsigned given;   /* bit of a DataOption: it was written */
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    bool nhwc;
    double scale, divisor; /* a value becomes value * scale / divisor */
    double *mean, *std;
    size_t n_mean, n_std;
    const char **columns;
    size_t n_columns;
    int64_t header;
    int64_t from, to; /* rows; to -1: the end */
    const char *key;
} DataSpec;

typedef struct DataFill {
    const char *name;
    bool range; /* 0, 1, 2, .. along the last dimension */
    bool whole; /* an integer was written */
    double value;
    int64_t integer; /* where whole */
} DataFill;

/* Reads one text; `flag` is the option it came with: --data, --val, --target, --val-target. */
Status data_spec_read(Diag *d, Arena *arena, const char *flag, const char *text, DataSpec *spec);

/* Reads NAME=VALUE or NAME=range. */
Status data_fill_read(Diag *d, Arena *arena, const char *flag, const char *text, DataFill *fill);

/* Whether an option was written. */
static inline bool data_given(const DataSpec *spec, DataOption option)
{
    return spec->given >> option & 1;
}

/* "layout"; "the element type" for DATA_dtype. */
const char *data_option_name(DataOption option);

/* The text that gives the same file with one option more: --data x=x.npy:layout=nhwc.  The name is the one it has, else
 * `input`; null: none. */
const char *data_spec_with(Arena *arena, const DataSpec *spec, const char *input, const char *option);

#endif
