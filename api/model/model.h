/* A model that was read: its file, its graph and its signature. */
#ifndef API_MODEL_MODEL_H
#define API_MODEL_MODEL_H

#include "api/hall/context.h"
#include "api/options/options.h"
#include "base/file_set.h"
#include "frontends/onnx/import.h"

/* An input or output of the signature. */
typedef struct Value {
    const char *name;
    const Type *type;
    const char *dims[MAX_RANK]; /* names of symbolic dimensions; null: a number, or nameless */
    const char *text;           /* the type as people read it: f32[batch,3,224,224] */
} Value;

typedef struct ModelRun ModelRun;

struct qcc_model {
    qcc_context *cx;
    Held held;
    Cleanup cleanup;
    Arena arena;
    Heap heap; /* results of the last run */
    Heap data; /* values that were read for it */
    Ir ir;
    Spine spine;
    bool has_spine;
    size_t file_bytes; /* in memory, of a model that came as text and was made a file; else 0 */
    bool lent;         /* the source is memory or a reader of the host's */
    const char *file;  /* as the user wrote it */
    Module *module;
    Graph *graph;
    Graph *runs; /* what is run of it: the same, or on codes where it is quantized; null: nobody asked yet */
    Value *inputs, *outputs;
    size_t n_inputs, n_outputs;
    Map input_names, output_names; /* to the first value of each name */
    Tensor **results;              /* of the last run */
    ModelRun *run;                 /* what the engine made for it (api/model/evaluate.c); null: nothing so far */
    CommandLine line;              /* the options it was read with */
    FileSet files;                 /* what was read for it */
    FileSet *outer;                /* while it is read: that of the command */
    size_t users;                  /* steps */
    bool freed;                    /* by its owner: it goes with its last step */
};

/* Reads a model; `line` holds the model options.  The caller, or the context, closes it. */
Status model_read(qcc_context *cx, const qcc_source *source, const CommandLine *line, qcc_model **model);

/* Looks whether a file, by its ending one of ONNX, is a step; nothing more of it is read. */
Status model_file_is_step(qcc_context *cx, const char *path, bool *is);

/* From here to the end of the call nothing is written over what the model was read from. */
void model_guard(qcc_model *m);

/* Gives the model back. */
void model_close(qcc_model *m);

/* Gives back what runs it. */
void model_run_close(qcc_model *m);

/* Finds the signature of an imported model. */
Status model_signature(qcc_model *m);

/* OK when every operator has a meaning; otherwise reports all that have none. */
Status model_supported(qcc_model *m);

/* Whether a node is kept as it is for want of a card of its own, not because it reads what such a node gave. */
bool node_lacks_card(const Node *n);

/* What a host is told of a value. */
bool value_tell(const Value *v, qcc_value_info *info);

/* A dimension as people read it: the number, the symbolic name, or ?. */
const char *value_dim(Arena *arena, const Value *v, int i);

/* Reads a .qir file or text (api/model/read_text.c). */
Status model_read_text(qcc_model *m, const qcc_source *source, Str text);

/* Gives a model that was read as text the file that it would be: what trains and what is exported starts from one. */
Status model_as_file(qcc_model *m);

/* Which of the options bind dimensions: into what the importer takes, in `arena`.  Values have types of `ir` and live
 * in `heap`. */
Status bindings_read(qcc_model *m, Ir *ir, Arena *arena, Heap *heap, const CommandLine *line, ImportOptions *o);

#endif
