"""What torch's casts and torchao's formats of few bits give for rows, blocks and a layer of BitNet.  Without an argument it
writes formats.h (run by hand, with torch and torchao); with the file as its argument it computes all again and compares."""
import os
import sys

import torch
from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale, unpack_uint4
from torchao.prototype.quantized_training.bitnet import (BitNetTrainingLinearWeight, get_bitnet_scale,
                                                         quantize_bitnet_weight)

ROWS, COLS, OUT = 4, 64, 6


def inputs():
    i = torch.arange(1, ROWS * COLS + 1, dtype=torch.float32)
    x = (torch.sin(0.7 * i) * torch.exp2(torch.floor(4 * torch.sin(0.11 * i)))).reshape(ROWS, COLS)
    x[2, :32] = 0
    return x, (0.3 * torch.sin(1.3 * torch.arange(1, OUT * COLS + 1, dtype=torch.float32))).reshape(OUT, COLS)


def cast(x, dtype, largest):
    s = x.abs().amax(1, keepdim=True).clamp(min=1e-12) / largest
    return (x / s).clamp(-largest, largest).to(dtype).float() * s


def mx(x, element):
    return MXTensor.to_mx(x, element, 32).dequantize(torch.float32)


def nvfp4(x):
    number = per_tensor_amax_to_scale(x.abs().max())
    scale, codes = nvfp4_quantize(x, 16, number)
    values = f4_unpacked_to_f32(unpack_uint4(codes.view(torch.uint8))).reshape(ROWS, -1, 16)
    return (values * (scale.float() * number).reshape(ROWS, -1, 1)).reshape(ROWS, COLS)


def answers():
    x, w = inputs()
    yield "torch, e4m3", "e4m3:row:dynamic", cast(x, torch.float8_e4m3fn, 448.0)
    yield "torch, e5m2", "e5m2:row:dynamic", cast(x, torch.float8_e5m2, 57344.0)
    yield "torchao, MX of e4m3", "e4m3:block=32:e8m0:dynamic", mx(x, torch.float8_e4m3fn)
    yield "torchao, MX of e5m2", "e5m2:block=32:e8m0:dynamic", mx(x, torch.float8_e5m2)
    yield "torchao, MX of e2m3", "e2m3:block=32:e8m0:dynamic", mx(x, "fp6_e2m3")
    yield "torchao, MX of e3m2", "e3m2:block=32:e8m0:dynamic", mx(x, "fp6_e3m2")
    yield "torchao, MX of e2m1", "e2m1:block=32:e8m0:dynamic", mx(x, torch.float4_e2m1fn_x2)
    yield "torchao, NVFP4", "e2m1:block=16:e4m3:dynamic", nvfp4(x)


def layer():
    x, w = inputs()
    y = torch.nn.functional.linear(x, BitNetTrainingLinearWeight(w))
    return quantize_bitnet_weight(w, get_bitnet_scale(w)).float(), get_bitnet_scale(w), y


def numbers(t):
    return "{ " + ", ".join("%.9g" % v for v in t.detach().flatten().tolist()) + " }"


def text():
    x, w = inputs()
    codes, scale, y = layer()
    yield "/* Written by formats.py. */\n/* clang-format off */"
    yield "static const double stored_x[] = " + numbers(x) + ";"
    yield "static const double stored_w[] = " + numbers(w) + ";"
    yield "static const Stored stored[] = {"
    for what, spec, number in answers():
        yield '    { "%s", "%s",\n      %s },' % (what, spec, numbers(number))
    yield "};"
    yield "static const double bitnet_codes[] = " + numbers(codes) + ";"
    yield "static const double bitnet_scale = %.9g;" % scale.item()
    yield "static const double bitnet_y[] = " + numbers(y) + ";"
    yield "/* clang-format on */"


def main():
    now = "\n".join(text()) + "\n"
    if len(sys.argv) < 2:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "formats.h"), "w", encoding="utf-8") as f:
            f.write(now)
        return 0
    with open(sys.argv[1], encoding="utf-8") as f:
        was = f.read()
    for a, b in zip(was.split("\n"), now.split("\n"), strict=True):
        assert a == b, f"{a}\n is now\n{b}"
    print(f"{len(stored_lines(now))} answers are as stored")
    return 0


def stored_lines(text):
    return [line for line in text.split("\n") if line.startswith("    { ")]


if __name__ == "__main__":
    sys.exit(main())
