/* A classifier on a machine without floats and without an allocator: the picture comes as codes, the class goes out.
 *
 *     qcc train examples/models/cnn.qir --quant w8a8 .. -o int8.onnx
 *     qcc int8.onnx --batch 1 --emit c -o cnn.c
 *     qcc int8.onnx --batch 1 --emit c-header -o cnn.h
 *     cc -std=c99 -Os -DCNN_NO_FLOAT -I. examples/c/main.c cnn.c -o classify
 *
 * The codes of a picture are its numbers over CNN_X_SCALE, rounded, plus CNN_X_ZERO: where pixels of 8 bits are what the
 * model reads (scale 1/255), a table of 256 that is made once, on the host. */
#include <stdio.h>

#include "cnn.h"

static int32_t arena[(CNN_ARENA_BYTES + 3) / 4];
static uint8_t picture[CNN_X_LENGTH];
static int32_t sums[CNN_LOGITS_LENGTH];

/* Sums of classes have scales of their own: they are compared times these. */
static const int32_t ratios[] = CNN_LOGITS_RATIOS;

int main(void)
{
    while (fread(picture, sizeof picture, 1, stdin) == 1) {
        int best = 0;
        if (cnn_run_codes(picture, sums, arena) != 0) {
            return 1;
        }
        for (int i = 1; i < CNN_LOGITS_LENGTH; i++) {
            if ((int64_t)sums[i] * ratios[i] > (int64_t)sums[best] * ratios[best]) {
                best = i;
            }
        }
        printf("%d\n", best);
    }
    return 0;
}
