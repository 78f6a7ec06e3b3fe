/* Models, and modules of a training step over them, as text: what tests of STEP.onnx write and read. */
#ifndef TESTS_SUPPORT_STEP_TEXTS_H
#define TESTS_SUPPORT_STEP_TEXTS_H

#include "frontends/onnx/import.h"
#include "frontends/onnx/step.h"
#include "testing.h"

typedef struct StepText {
    const char *name, *model, *module;
} StepText;

/* All of them; `*n` gets their number. */
const StepText *step_texts(size_t *n);

/* Bytes that a sink collected, in an arena. */
Status step_append(void *user, const void *bytes, size_t n);

/* A model that was written and read again: the spine is s, which the caller closes. */
Module *step_model(Context *c, const char *text, Text *bytes, Spine *s);

/* The module of a step; states and constants that equal the model's parameter of their name are that parameter (with a
 * null model they only equal it). */
Module *step_module(Context *c, const char *text, const Module *model);

/* The text of a module, large constants named. */
const char *step_text_of(Context *c, const Module *m);

#endif
