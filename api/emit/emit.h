/* Parts of --emit. */
#ifndef API_EMIT_EMIT_H
#define API_EMIT_EMIT_H

#include "api/hall/lower.h"
#include "api/hall/out.h"
#include "api/options/options.h"
#include "ir/graph.h"

struct CudaModule;

typedef struct EmitPrograms {
    bool plan;  /* where values lie; else the launches */
    bool tapes; /* below each launch of a region */
    const Lowering *lowering;
} EmitPrograms;

/* What is written of kernels: their text, or what NVRTC makes of it for an architecture. */
typedef enum EmitKernels { EMIT_CUDA, EMIT_PTX, EMIT_CUBIN } EmitKernels;

/* Prints plans or programs: that of a model's graph, or where it is null those of the graphs of a step.  A graph that has
 * none is an error, UNSUPPORTED, which says why. */
Status emit_programs(const Module *module, const Graph *model, EmitPrograms how, Out *o);

/* Writes the kernels of the same graphs.  What has none is listed in the text, and a note says how many launches these are. */
Status emit_kernels(const Module *module, const Graph *model, const CommandLine *line, EmitKernels form, Out *o);

/* The kernels of these graphs, and those programs, for an architecture; as `made` of the module. */
Status kernels_of_graphs(qcc_context *cx, const Module *module, const Graph *model, const char *arch,
                         struct CudaModule *made);

/* The architecture that --arch says, or the one that is meant where it is not given. */
const char *kernels_arch(const CommandLine *line);

#endif
