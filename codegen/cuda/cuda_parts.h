/* What the files of codegen/cuda/ share: which kernels there are (cuda_text.c), what all are made of
 * (cuda_kernel.c), their bodies (cuda_rows.c, cuda_columns.c), and how values are spelled (cuda_words.c). */
#ifndef CODEGEN_CUDA_PARTS_H
#define CODEGEN_CUDA_PARTS_H

#include "codegen/cuda/cuda_text.h"
#include "ops/kernels/kernels.h"

enum {
    CUDA_WARP = 32,
    CUDA_THREADS = 256,    /* of a block, most */
    CUDA_SEGMENT = 1024,   /* elements of a row that a warp reduces (ops/reduce.h) */
    CUDA_COLUMN_ROWS = 64, /* rows of a part of a column */
    CUDA_COLUMN_SUMS = 8,  /* and its sums */
    CUDA_ALL_WARPS = 4,    /* of a block of `segments` */
    CUDA_NOWHERE = -1,
};

typedef struct CudaMaker {
    Text *out;
    Arena *arena;
    const Tape *tape;
    const OpTable *ops;
    const char *name;
    CudaLaunch *launch;
    const char *index; /* the type of indices */
    const char *block; /* the number of the block, as one */
    int *level;        /* by register: how many phases of reductions stand before it */
    int64_t *kept_at;  /* by register: where the scratch keeps its rows; CUDA_NOWHERE */
    int64_t *parts_at; /* by result: where the scratch has its parts */
    int64_t *apart_at; /* by result whose elements share bytes: where they lie in the scratch, one by one */
    int64_t segments;  /* of a row, or of all */
    bool has_rows, has_columns;
    bool *known; /* by register: the kernel under way has it in all its threads */
} CudaMaker;

/* What a late kernel takes, and where it returns at once. */
#define CUDA_APPLIED        "const u32 *applied,"
#define CUDA_UNLESS_APPLIED "    if (!*applied)\n        return;\n"

/* Where a step stands: the names of its indices; null: there is one alone. */
typedef struct CudaPlace {
    const char *row, *column, *element;
    int indent;
    bool reads_kept; /* what another kernel kept of each row is read */
} CudaPlace;

/* ---- cuda_words.c ---- */

/* The C type of an element that lies by itself; null: kernels know no such elements. */
const char *cuda_storage(DType d);

/* Whether several elements of a type share a byte; the C type of what an array of elements consists of. */
bool cuda_packed(DType d);
static inline const char *cuda_memory(DType d)
{
    return cuda_packed(d) ? "u8" : cuda_storage(d);
}

/* The element of an array at a place, as if it lay by itself; and a byte of a packed array of n, from one whose elements do. */
const char *cuda_element(Arena *arena, DType d, const char *array, const char *place);
const char *cuda_byte(Arena *arena, DType d, const char *array, const char *byte, int64_t n);

/* A number of an arithmetic as an element of a type is stored, and what is stored as a number of an arithmetic. */
const char *cuda_store(const CudaMaker *m, DType arithmetic, DType to, const char *value);
const char *cuda_load(const CudaMaker *m, DType from, DType arithmetic, const char *value);

/* The function of a row as kernels call it, and its text. */
void cuda_row_function(const CudaMaker *m, const TapeStep *s);

/* A step that makes a register, as a statement. */
void cuda_step(const CudaMaker *m, const TapeStep *s, const CudaPlace *at);

/* What a reduction is called in ops/reduce.h. */
const char *cuda_kind(const TapeStep *fold);

/* Spaces at the head of a line. */
void cuda_indent(const CudaMaker *m, int indent);

/* ---- cuda_kernel.c ---- */

/* Reductions that run over the same elements at once, and what is stored beside them. */
typedef struct CudaPhase {
    const TapeStep **folds;
    int n;
    bool stores;
    bool *needed; /* registers of an element */
} CudaPhase;

/* A phase without reductions, and one more of them. */
void cuda_open_phase(const CudaMaker *m, CudaPhase *p);
void cuda_add_fold(CudaPhase *p, const TapeStep *s);

/* Whether a step makes a register, and whether it is a result that leaves by rows, or by elements. */
bool cuda_makes(const TapeStep *s);
bool cuda_leaves(const Tape *t, const TapeStep *s, bool by_row);

/* A set of registers, empty; with those that results need; with what those in it are made from, but for what is
 * known. */
bool *cuda_no_registers(const CudaMaker *m);
void cuda_need_stores(const CudaMaker *m, bool by_row, bool *needed);
void cuda_close(const CudaMaker *m, bool *needed);

/* Prints the steps of registers that are needed and not known. */
void cuda_print_needed(const CudaMaker *m, const bool *needed, const CudaPlace *at);

/* The same of those that are the same in all threads of a block, which are known from then on: constants, and, by_row,
 * values of its row that need no more than `level` phases. */
void cuda_print_uniform(CudaMaker *m, const bool *needed, int level, bool by_row, const CudaPlace *at);

/* Prints where element i of the row under way lies. */
void cuda_print_element(const CudaMaker *m, int indent);

/* Whether any result leaves by rows, or by elements; prints how they do. */
bool cuda_any_store(const CudaMaker *m, bool by_row);
void cuda_print_stores(const CudaMaker *m, bool by_row, const char *index, int indent);

/* Begins a kernel, notes how it is launched, and knows nothing; ends it. */
void cuda_open_kernel(CudaMaker *m, const char *part, int64_t blocks, int threads);
void cuda_close_kernel(const CudaMaker *m);

/* Names of what the scratch holds: parts of sums, and what is kept of rows. */
void cuda_name_parts(const CudaMaker *m);
void cuda_name_kept(const CudaMaker *m);

/* ---- cuda_rows.c, cuda_columns.c ---- */

/* Packs what lies apart in the scratch to where it leaves. */
void cuda_pack(CudaMaker *m);

/* Prints one kernel. */
void cuda_map(CudaMaker *m);
void cuda_segments(CudaMaker *m);
void cuda_rows(CudaMaker *m);
void cuda_columns(CudaMaker *m);
void cuda_join(CudaMaker *m);

#endif
