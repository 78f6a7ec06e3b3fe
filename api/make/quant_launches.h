/* What quantization adds to a program: launches that do nothing else. */
#ifndef API_MAKE_QUANT_LAUNCHES_H
#define API_MAKE_QUANT_LAUNCHES_H

#include "api/make/launch_nodes.h"

/* Launches that only quantize, dequantize, mask or observe, which products, pools and rows of the model do not do on the
 * way; `over_data` are those that read or write values made of data, a batch of them, and not only weights or scales. */
typedef struct QuantLaunches {
    int n;
    double bytes; /* that they read and write */
    const int *over_data;
    int n_over_data;
    double data_bytes;
} QuantLaunches;

/* Finds them in a program that was made of a graph. */
QuantLaunches quant_launches(const LaunchMap *m, Arena *arena);

#endif
