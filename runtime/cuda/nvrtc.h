/* NVRTC, which compiles the text of kernels: a library of the CUDA toolkit that is looked for when it is needed, never linked.
 * No device has to be there. */
#ifndef RUNTIME_CUDA_NVRTC_H
#define RUNTIME_CUDA_NVRTC_H

#include "base/diag.h"
#include "base/str.h"

typedef struct NvrtcProgram NvrtcProgram;

/* Its functions, which answer 0 or the number of an error. */
typedef struct Nvrtc {
    const char *name; /* of the library that was found */
    int major, minor;
    int (*version)(int *major, int *minor);
    int (*count_archs)(int *n);
    int (*list_archs)(int *archs);
    const char *(*error)(int code);
    int (*create)(NvrtcProgram **, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(NvrtcProgram *, int n, const char *const *options);
    int (*log_size)(NvrtcProgram *, size_t *);
    int (*log)(NvrtcProgram *, char *);
    int (*ptx_size)(NvrtcProgram *, size_t *);
    int (*ptx)(NvrtcProgram *, char *);
    int (*cubin_size)(NvrtcProgram *, size_t *);
    int (*cubin)(NvrtcProgram *, char *);
    int (*destroy)(NvrtcProgram **);
} Nvrtc;

/* Loads the library; DEVICE, with what was looked for and what brings it, where it is not there or too old. */
Status nvrtc_load(Nvrtc *n, Diag *d, Place place, Arena *arena);

/* The number of "sm_90a", 90; -1: it is no such word. */
int nvrtc_arch_number(const char *arch);

/* Checks that an architecture, "sm_90a", is one that the library compiles for; USAGE, with those that it knows, where it
 * is not. */
Status nvrtc_check_arch(const Nvrtc *n, Diag *d, Place place, const char *arch, Arena *arena);

/* What devices of other architectures compile as they load it, or what that architecture runs. */
typedef enum NvrtcForm { NVRTC_PTX, NVRTC_CUBIN } NvrtcForm;

/* Compiles a text for an architecture.  The log has what the assembler says of each kernel (of a cubin); INTERNAL where the text
 * does not compile, with what the compiler says. */
Status nvrtc_compile(const Nvrtc *n, Diag *d, const char *text, const char *arch, NvrtcForm form, Arena *arena,
                     Str *bytes, const char **log);

/* A text on its way: made, run, taken, ended. */
typedef struct NvrtcJob {
    const char *text, *const *options;
    int n_options;
    NvrtcForm form;
    NvrtcProgram *program;
    const char *failed; /* at what; null: at nothing */
    int code;
} NvrtcJob;

/* A text that is to be compiled; it and what is in `arena` stay until the job has run. */
NvrtcJob nvrtc_job(const char *text, const char *arch, NvrtcForm form, Arena *arena);

/* Compiles it; any thread may, several at once, since no memory of a context is asked for. */
void nvrtc_job_run(const Nvrtc *n, NvrtcJob *job);

/* What came of a job that ran, as nvrtc_compile answers. */
Status nvrtc_job_take(const Nvrtc *n, Diag *d, const NvrtcJob *job, Arena *arena, Str *bytes, const char **log);

/* Gives back what it holds, whether it ran or not. */
void nvrtc_job_end(const Nvrtc *n, NvrtcJob *job);

/* What is compiled with, but for the architecture: what a cache of what was compiled depends on. */
extern const char *const nvrtc_options[];

/* What the assembler says of a kernel. */
typedef struct KernelUse {
    const char *name;
    int registers, barriers;
    int64_t shared, stack, spills; /* bytes; spills: stored and loaded */
} KernelUse;

/* Reads the kernels of a log, in its order; how many. */
size_t nvrtc_uses(const char *log, Arena *arena, KernelUse **uses);

#endif
