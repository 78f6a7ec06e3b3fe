/* Options as a recipe, a recipe as notes of a step, and back. */
#ifndef API_MAKE_RECIPE_H
#define API_MAKE_RECIPE_H

#include "api/make/step.h"
#include "frontends/onnx/step.h"

/* Reads what a line says of parameters and optimizer; what it leaves open is decided by the rules of the bare command. */
Status recipe_read(qcc_step *s, const CommandLine *line);

/* The same of losses, for a model's graph. */
Status recipe_read_losses(qcc_step *s, Graph *g, const CommandLine *line);

/* The same losses, each weighing its samples by an input, so that samples of weight 0 are as if they were not there. */
LossSpec *recipe_masked(qcc_step *s);

/* Reads the weights of classes that losses name: of a step's file out of it, else out of files (api/make/recipe_weights.c). */
Status recipe_read_weights(qcc_step *s, LossSpec *losses, size_t n);

/* These weights as JSON for the notes of a step, null when it has none; and back. */
const char *recipe_weights_text(qcc_step *s);
Status recipe_weights_read(qcc_step *s, const char *text);

/* Reads the tables that a line names, and warns of what says nothing (api/make/precision.c). */
Status precision_read(qcc_step *s, const CommandLine *line);

/* Whether the incomplete last batch of an epoch is trained on as it is (--last keep): the step weighs its samples. */
bool recipe_keeps_last(const CommandLine *line);

/* What a step records of an option, whoever compiled it; null: nothing. */
const char *recipe_recorded(qcc_step *s, Option o);

/* The command that compiles the step again: what it was made with, what is said now in place of what was said then. */
const char *recipe_compile_line(qcc_step *s, const CommandLine *line);

/* USAGE, with the line that compiles again, when a line for a step has options that were compiled in. */
Status recipe_refuse(qcc_step *s, const CommandLine *line);

/* What a step remembers: the options it was compiled with. */
Status recipe_to_notes(qcc_step *s, StepNotes *notes);

/* The same, back. */
Status recipe_from_notes(qcc_step *s, const StepNotes *notes);

/* The batch of a graph: dimension 0 of its first data input. */
int64_t step_batch_of(const Graph *g);

/* The model once more, for training: symbolic dimensions get their sizes (api/make/bind_model.c). */
Status step_bind_model(qcc_step *s, const CommandLine *line, Graph **g);

/* Another batch for a graph whose file fixes one, 0 for none: the constants that state it follow. */
Status step_change_batch(qcc_step *s, Graph *g, int64_t batch);

/* Finds the inputs that are no samples, which every micro-batch reads whole; `batch`: the samples of one. */
void step_find_whole(qcc_step *s, const Graph *g, int64_t batch);

#endif
