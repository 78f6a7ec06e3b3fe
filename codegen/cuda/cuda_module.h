/* The kernels of whole programs as one text: equal tapes have equal text, which stands there once and runs in as many
 * launches as want it.
 *
 *     CudaModule m;
 *     cuda_module_open(&m, ops, arena);
 *     cuda_module_add(&m, program, "step");
 *     cuda_prelude(&text);
 *     cuda_module_print(&m, true, &text);
 *
 * The text that is compiled has numbers for names, so that it is the same for equal programs whatever their models call
 * things; the annotated one has the lines of the IR and the names of the launches as comments, and the same kernels. */
#ifndef CODEGEN_CUDA_CUDA_MODULE_H
#define CODEGEN_CUDA_CUDA_MODULE_H

#include "base/map.h"
#include "codegen/cuda/cuda_text.h"
#include "ir/program.h"

/* How a launch of a program runs. */
typedef struct CudaPart {
    const Launch *launch;
    const char *program; /* the name of its program, and its number there */
    int number;
    int text;           /* of the texts of the module; CUDA_NO_TEXT */
    const char *why;    /* it has none; null: it has */
    CudaLaunch kernels; /* where it has one; */
    int n_product;      /* of a contract, how many of them make the product: of the operands of that alone */
} CudaPart;

enum { CUDA_NO_TEXT = -1 };

typedef struct CudaModule {
    Arena *arena;
    const OpTable *ops;
    KernelTarget target; /* set before launches are added */
    Map known;           /* texts with one name for all, to the first part that has it */
    CudaPart *parts;     /* in the order of the programs and their launches */
    size_t n, cap;
    const char **texts; /* each under the name of its number: k0, k1, .. */
    size_t n_texts, cap_texts;
    int n_kernels, n_without; /* kernels of all texts; launches that have none */
} CudaModule;

/* An empty module. */
void cuda_module_open(CudaModule *m, const OpTable *ops, Arena *arena);

/* Adds the launches of a program. */
void cuda_module_add(CudaModule *m, const Program *p, const char *name);

/* Appends the text of all kernels, which follows that of cuda_prelude(); annotated: with comments that say what they are of, and which launches have none. */
void cuda_module_print(const CudaModule *m, bool annotated, Text *out);

/* The kernels of one program, with their text whole, as engines want them. */
const ProgramKernels *cuda_kernels_of(const Program *p, const KernelTarget *target, const OpTable *ops, Arena *arena);

#endif
