/* Names of what weigh-quantizers adds. */
#ifndef PASSES_PTQ_WEIGH_H
#define PASSES_PTQ_WEIGH_H

/* A state of 1: the part of what a quantizer changes that counts; behind it the value that is quantized. */
#define WEIGH_PREFIX "qcc.weigh/"
#define WEIGH_GRAPH  "sensitivity"

#endif
