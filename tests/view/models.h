/* Models that are looked at, as .qir text. */
#ifndef TESTS_VIEW_MODELS_H
#define TESTS_VIEW_MODELS_H

#include "base/text.h"

/* The 122 nodes of an inference ResNet-50, its parameters drawn. */
void model_resnet50(Text *t);

/* A training step of a plain network of n layers: forward, backward, Adam; 23 nodes a layer. */
void model_step(Text *t, int n);

/* A loop around a branch, three levels deep, with names that try to be markup. */
void model_nested(Text *t);

#endif
