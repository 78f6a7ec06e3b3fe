/* A loss that is scaled by a power of two trains the same weights, to the bit.
 *
 *     scale QCC */
#include <stdio.h>

#include "train/command.h"

static void train(const char *model, const char *precision, const char *scale, const char *more, const char *out)
{
    const int code =
        qcc("train %s --data x.npy --target y.npy --batch 14 --steps 20 --no-save %s --loss-scale %s %s -o %s", model,
            precision, scale, more, out);
    check(code == 0, "%s %s %s %s: exit %d", model, precision, scale, more, code);
    check(file_has("out.txt", " 0 skipped"), "%s %s %s %s: skipped", model, precision, scale, more);
}

int main(int argc, char **argv)
{
    /* Of fp16 the scales are such that nothing underflows at either. */
    static const struct {
        const char *precision, *one, *other;
    } pairs[] = {
        { "", "off", "static:1024" },
        { "--amp bf16", "off", "static:1024" },
        { "--amp bf16", "off", "dynamic:init=64,interval=5" },
        { "--amp fp16", "static:1024", "static:2048" },
    };
    static const char *const models[] = { "toy.qir", "rich.qir" };
    static const char *const more[] = { "--optimizer adam:lr=1e-2 --clip-norm 0.5",
                                        "--optimizer momentum:lr=1e-2 --clip-value 0.01 --accumulate 2 --ema 0.9" };
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t k = 0; k < 2; k++) {
            train(models[k], pairs[i].precision, pairs[i].one, more[(i + k) % 2], "one.onnx");
            train(models[k], pairs[i].precision, pairs[i].other, more[(i + k) % 2], "other.onnx");
            check(same_files("one.onnx", "other.onnx"), "%s %s: %s and %s differ", models[k], pairs[i].precision,
                  pairs[i].one, pairs[i].other);
        }
    return finish();
}
