/* Calls that behave differently in training: BatchNormalization and Dropout. */
#ifndef PASSES_MODEL_MODES_H
#define PASSES_MODEL_MODES_H

#include "passes/engine/pass.h"

/* Turns norms, dropouts or both to training: norms whose statistics are states of the graph, whose next values become
 * results with the names of the states; dropouts unless an input decides, or nothing is dropped. */
Status modes_train(Graph *g, PassRun *run, bool norms, bool dropouts);

/* Turns them to inference: norms read their running statistics, which stay as they are; dropouts pass everything. */
Status modes_infer(Graph *g, PassRun *run, bool norms, bool dropouts);

#endif
