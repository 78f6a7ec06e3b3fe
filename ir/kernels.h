/* The kernels of a program as an engine of a device launches them: data, made by codegen/. */
#ifndef IR_KERNELS_H
#define IR_KERNELS_H

#include "ir/program.h"

enum { CUDA_KERNELS = 64 }; /* of a launch: a product's, and those of a tape; or those that a card writes */

/* What makes a product in the place of a kernel: its maker's. */
typedef struct KernelProduct KernelProduct;

typedef struct CudaKernel {
    const char *name;
    int64_t blocks;
    int threads;                  /* of a block */
    bool tensor;                  /* tensor cores compute its products, where a device has some */
    const KernelProduct *product; /* a library makes it, and there is none of this name; null: there is */
} CudaKernel;

/* How the kernels of a tape or a call are launched: all of them with the same arguments, pointers to the data of what is
 * read (operands that are absent have none), to that of results, where it draws to the seed, the step of the run and the turn of a
 * loop (three u64), where values may refuse it to one u32, where it is late to another one, and to so many bytes of scratch, aligned
 * at 16.  The first u32 is set to 1 where an index leads out of what it is an index of (docs/lowering.md); nothing is read or written
 * there, and results are not to be used.  Where the second is 0, the step is not applied, and nothing at all is done. */
typedef struct CudaLaunch {
    CudaKernel kernels[CUDA_KERNELS];
    int n;
    size_t scratch;
    bool draws, refuses, late;
} CudaLaunch;

/* How a launch of a program runs. */
typedef struct LaunchKernels {
    CudaLaunch launch; /* n = 0: by none, */
    const char *why;   /* for this reason */
    int n_product;     /* of a contract, how many of them make the product: of the operands of that alone */
    int text;          /* where they are; below 0: nowhere */
} LaunchKernels;

/* With what is late come two kernels more, by which a device decides whether a step is applied; they take pointers alone.
 *
 *     decide(asked, refused, told): one block.  `asked` are u64: how many numbers, how many flags there are in `refused`, the
 *         address of a bool that says whether the step is applied (0: there is none), and of each number its address, its bytes,
 *         and the bits of its exponent (0: it need not be finite).  Word COMMIT_COUNTS of `told`, which are u64, becomes 1 where no
 *         flag is set, the numbers are finite, and COMMIT_HELD is 0; COMMIT_APPLIED where the bool says so, too.  Else they
 *         become 0.  Where COMMIT_APPLIED does, COMMIT_HELD becomes 1, so that no step behind this one counts.  From word
 *         COMMIT_TOLD on are the numbers' bytes.
 *     move(moves, told): so many blocks, each of which copies one piece where a word of `told` is not 0.  `moves` are u64, of each
 *         piece to where, from where, how many bytes, and which word. */
enum {
    COMMIT_NUMBERS = 16, /* most */
    COMMIT_APPLIED = 0,
    COMMIT_HELD = 1,
    COMMIT_ALWAYS = 2, /* is 1: what late launches look at where the host decides */
    COMMIT_COUNTS = 3, /* what a step leaves that is not applied is committed, too */
    COMMIT_TOLD = 4,
    COMMIT_DECIDERS = 32, /* threads */
    COMMIT_MOVERS = 256,
    COMMIT_PIECE = 1 << 16 /* bytes of a piece, most */
};
#define COMMIT_DECIDE "commit_decide"
#define COMMIT_MOVE   "commit_move"

typedef struct ProgramKernels {
    const char *prelude;      /* of every text, */
    const char *const *texts; /* which know nothing of each other */
    size_t n_texts;
    const LaunchKernels *launches; /* of each of the program */
    int n_without;                 /* launches */
    int commit;                    /* the text of the two kernels of a commit; below 0: nothing is late */
} ProgramKernels;

/* A stack of matrices as a library reads it: column by column, `line` elements from one column to the next, `step` from one
 * matrix to the next, the first one from element `from` on of what an argument of the launch points to. */
typedef struct MatrixStack {
    DType type;
    int argument;
    bool turned; /* it is read transposed */
    int64_t rows, columns, line, step, from;
} MatrixStack;

/* What becomes of the sums of a product, in f32, before they are rounded to the type of d: something is added to them, and what
 * is below zero becomes zero.  Arguments are counted as those of the whole launch then, a product's and the rows' behind it. */
typedef struct ProductEnd {
    int added,
        bias; /* arguments: an element of the type of d for each of d; a number for each row of d; or NO_ARGUMENT */
    DType bias_type;
    bool relu;
} ProductEnd;

enum { NO_ARGUMENT = -1 };

/* d = a b, for each of `n` matrices, and what becomes of it. */
typedef struct StackProduct {
    MatrixStack a, b, d;
    int64_t n;
    ProductEnd end;
} StackProduct;

/* Who makes products beside kernels: a library on a device. */
typedef struct ProductMaker ProductMaker;
struct ProductMaker {
    /* What it makes this one by, with its end, and how many bytes of the scratch it works in, aligned at 256; null: by nothing. */
    const KernelProduct *(*take)(ProductMaker *m, const StackProduct *p, size_t *scratch);
};

/* What kernels are made for. */
typedef struct KernelTarget {
    bool
        narrow; /* products of bf16, and attention, by tensor cores, near the bits of the reference, of a device that has some */
    bool narrow_codes;      /* and of floats of eight bits */
    ProductMaker *products; /* asked first of each product of matrices; null: kernels make all */
} KernelTarget;

/* The first architectures whose tensor cores multiply bf16, and floats of eight bits, as compilers number them. */
enum { CUDA_NARROW_ARCH = 80, CUDA_NARROW_CODES_ARCH = 89 };

/* Makes them, in `arena`. */
typedef const ProgramKernels *KernelMaker(const Program *p, const KernelTarget *target, const OpTable *ops,
                                          Arena *arena);

#endif
