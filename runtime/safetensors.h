/* The reader of safetensors files stands in ir/, where the blobs of textual models need it too. */
#ifndef RUNTIME_SAFETENSORS_H
#define RUNTIME_SAFETENSORS_H

#include "ir/safetensors.h"

#endif
