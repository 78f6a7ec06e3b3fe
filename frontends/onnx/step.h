/* The file of a training step, STEP.onnx: the model it was made from, byte for byte, and the step behind it.
 *
 * The graphs of a module (@step, @eval ..) go into the algorithm of one TrainingInfoProto.  They read the model's
 * initializers and inputs by name and nothing else of it; every value of theirs is `qcc.NAME-OF-GRAPH/NAME-OF-VALUE`.
 * A result that has the name of a state is its next value (update_binding).  Reading gives the same graphs back, to the
 * letter.  A model that was never a file (.qir) becomes one first: onnx_write, and spine_read of what that wrote. */
#ifndef FRONTENDS_ONNX_STEP_H
#define FRONTENDS_ONNX_STEP_H

#include "frontends/onnx/export.h"
#include "ir/graph.h"

/* What a step remembers beside its graphs: metadata of the file.  Keys begin with "qcc.", other than the writer's own,
 * which begin with "qcc.file."; values are text, JSON where they have structure. */
typedef struct StepNote {
    const char *key, *value;
} StepNote;

typedef struct StepNotes {
    const StepNote *list;
    size_t n;
} StepNotes;

/* Writes the graphs of a module, the first of which is @step, behind the model of a spine; `weight_file`, for the file
 * that the sink fills, may be null, and then nothing can lie beside it.  UNSUPPORTED, naming them, when there are operators that
 * are not understood. */
Status onnx_write_step(Spine *s, const Module *m, const StepNotes *notes, Diag *d, const Sink *sink,
                       WeightFile *weight_file);

/* Whether a model that was read is a step of ours. */
bool onnx_is_step(const Spine *s);

/* Reads the graphs of a step into a fresh module, whose origin is the spine, and its notes (null: not wanted).  INVALID
 * when the file is no step, or not one of ours.  (onnx_import of such a spine gives the model.) */
Status onnx_read_step(Ir *ir, Arena *arena, Spine *s, Module **module, StepNotes *notes);

/* Writes a graph as a plain ONNX model that computes it: data and states are its inputs, results its outputs, the next
 * value of state NAME as NAME.next.  Ops without a standard name are written as what they expand to, in a copy of the
 * graph. */
Status onnx_write_flat(const Graph *g, Diag *d, const Sink *sink);

/* ---- the way out of training ---- */

/* The value that a state has in the end, under the state's name. */
typedef struct TrainedState {
    const char *name;
    const Tensor *value;
    bool of_training;    /* the file need not have a place for it */
    const Tensor *codes; /* what it is where the file holds integers; null: none of those */
} TrainedState;

/* A parameter that the file holds once more under another name, because constant folding broke a tie. */
typedef struct Twin {
    const char *state, *twin;
    bool transposed; /* of two matrices */
} Twin;

typedef struct TrainedStates {
    const TrainedState *list;
    size_t n;
    const Twin *twins;
    size_t n_twins;
    WeightFile *weight_file; /* the file that the sink fills; null: nothing can lie beside it */
} TrainedStates;

/* Writes the deployable model with final states where its parameters were: initializers, Constants, and aliases, which
 * become initializers of their own where they differ from what they name.  A parameter of another float type is rounded
 * to the file's.  States of ours (qcc.*) stay behind; what equals the file's own value changes nothing.  `s` is the
 * spine of a model or of a step. */
Status onnx_export_states(Spine *s, Diag *d, const TrainedStates *states, const Sink *sink);

/* Puts the same values into the parameters of a graph that was imported from that spine; they live in the arena of the
 * graph and in `heap`, or are those of `states`. */
Status onnx_put_states(Spine *s, Diag *d, const TrainedStates *states, Graph *g, Heap *heap);

#endif
