"""What formats of few bits make of every number of 16 bits, and of the middle of every two neighbours and the f32 numbers
beside it: quantizers with one scale, and the blocks of MX and NVFP4.  The casts are those of ml_dtypes, the scales the
formulas of docs/lowbit.md; where torchao is found its MX blocks have to be the same, and it is told how many of its NVFP4 are
not.  Without an argument it writes blocks.h, a sum for each of them; with the file as its argument it computes all again
and compares."""
import os
import sys

import ml_dtypes
import numpy

WIDE = 64  # numbers of a row
STEP = 24593  # numbers that far apart are side by side in the sets called "apart"
F32 = numpy.float32
FLOATS = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2": ml_dtypes.float8_e5m2,
          "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f6e2m3": ml_dtypes.float6_e2m3fn, "f6e3m2": ml_dtypes.float6_e3m2fn,
          "f4e2m1": ml_dtypes.float4_e2m1fn}
SCALES = [1.0, 0.7, 3e-5]
BLOCKS = {"e4m3": ("f8e4m3", 8), "e5m2": ("f8e5m2", 15), "e2m3": ("f6e2m3", 2), "e3m2": ("f6e3m2", 4), "e2m1": ("f4e2m1", 2)}


def patterns(sixteen):
    """Every finite number of bf16 or f16."""
    bits = numpy.arange(1 << 16, dtype=numpy.uint32)
    x = (bits << 16).view(F32) if sixteen == "bf16" else bits.astype(numpy.uint16).view(numpy.float16).astype(F32)
    return x[numpy.isfinite(x)]


def apart(x):
    return x[numpy.arange(len(x), dtype=numpy.int64) * STEP % len(x)]


def middles(name):
    """Of every two neighbours of a format, the ends and beyond: the middle and the numbers beside it; in front of
    each 15 the power of two in the largest number, so that a block's scale is 1."""
    codes = numpy.arange(1 << ml_dtypes.finfo(FLOATS[name]).bits, dtype=numpy.uint8).view(FLOATS[name]).astype(numpy.float64)
    ends = numpy.unique(codes[numpy.isfinite(codes)])
    middle = ((ends[1:] + ends[:-1]) / 2).astype(F32)
    x = numpy.stack([numpy.nextafter(middle, F32(-numpy.inf)), middle, numpy.nextafter(middle, F32(numpy.inf))], 1).ravel()
    top = F32(2.0 ** numpy.floor(numpy.log2(ends[-1])))
    x = numpy.append(x, numpy.zeros(-len(x) % 15, F32)).reshape(-1, 15)
    x = numpy.insert(x, 0, top, axis=1).ravel()
    return numpy.append(x, numpy.zeros(-len(x) % WIDE, F32))


def sets(name):
    for sixteen in ("bf16", "f16"):
        yield sixteen, patterns(sixteen)
        yield sixteen + " apart", apart(patterns(sixteen))
    yield "middles", middles(name)


def cast(x, name):
    """Saturated, and back."""
    most = F32(ml_dtypes.finfo(FLOATS[name]).max)
    return numpy.clip(x, -most, most).astype(FLOATS[name]).astype(F32)


def one_scale(x, name, scale):
    return cast(x / F32(scale), name) * F32(scale)


def in_blocks(x, size):
    blocks = x.reshape(-1, size)
    return blocks, numpy.abs(blocks).max(1, keepdims=True)


def power_of(most, top):
    """2^(floor(log2 most) - top), no less than 2^-127."""
    _, exponent = numpy.frexp(most.astype(numpy.float64))
    exponent = numpy.where(most > 0, exponent - 1, -4000)
    return numpy.ldexp(1.0, numpy.maximum(exponent - top, -127)).astype(F32)


def mx(x, element):
    name, top = BLOCKS[element]
    blocks, most = in_blocks(x, 32)
    s = power_of(most, top)
    return (cast(blocks / s, name) * s).ravel()


def mxint8(x):
    blocks, most = in_blocks(x, 32)
    s = power_of(most, 6)
    return (numpy.clip(numpy.rint(blocks / s), -127, 127).astype(numpy.int8).astype(F32) * s).ravel()


def nvfp4(x):
    blocks, most = in_blocks(x, 16)
    number = numpy.maximum(most.max(), F32(1e-12)) / F32(448 * 6)
    scale = cast(numpy.maximum(most / F32(6) / number, F32(2.0**-9)), "f8e4m3") * number
    return (cast(blocks / scale, "f4e2m1") * scale).ravel()


def sum_of(x):
    """One for the bits of all numbers."""
    total = 0xCBF29CE484222325
    for word in x.view(numpy.uint32).tolist():
        total = (total ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return total


def answers():
    """(quantizer, set, numbers)"""
    for name in FLOATS:
        for scale in SCALES:
            for what, x in sets(name):
                yield "%s, scale %.9g" % (name, scale), what, one_scale(x, name, scale)
    for element, (name, _) in BLOCKS.items():
        for what, x in sets(name):
            yield element + ":block=32:e8m0:dynamic", what, mx(x, element)
    for what, x in sets("f4e2m1"):
        yield "int8:block=32:e8m0:narrow:dynamic", what, mxint8(x)
    for what, x in sets("f4e2m1"):
        if not what.startswith("bf16"):  # whose largest leaves one number of the tensor for nothing else
            yield "e2m1:block=16:e4m3:dynamic", what, nvfp4(x)


def text():
    yield "/* Written by blocks.py. */\n/* clang-format off */"
    yield "static const StoredSum stored_sums[] = {"
    for quantizer, what, numbers in answers():
        yield '    { "%s", "%s", %d, 0x%016xu },' % (quantizer, what, len(numbers), sum_of(numbers))
    yield "};"
    yield "/* clang-format on */"


def beside_torchao():
    """torchao's MX has the same numbers, but where its scales stop at 2^-126; its NVFP4 multiplies by reciprocals."""
    try:
        import torch
        from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32
        from torchao.prototype.mx_formats.mx_tensor import MXTensor
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, unpack_uint4
    except ImportError:
        print("torchao: none found")
        return
    theirs = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2",
              "e2m1": torch.float4_e2m1fn_x2}
    for element, (name, top) in BLOCKS.items():
        for what, x in sets(name):
            most = in_blocks(x, 32)[1]
            kept = numpy.repeat((power_of(most, top) > 2.0**-126) & (most >= 2.0**-126), 32)
            got = MXTensor.to_mx(torch.from_numpy(x.copy()).reshape(-1, WIDE), theirs[element], 32).dequantize(torch.float32)
            differ = (got.numpy().ravel() != mx(x, element))[kept].sum()
            assert differ == 0, "MX of %s, %s: %d differ" % (element, what, differ)
            print("torchao, MX of %-5s %-11s %d of %d, none differs" % (element, what, kept.sum(), len(x)))
    for what, x in sets("f4e2m1"):
        if what.startswith("bf16"):
            continue
        number = torch.tensor(numpy.abs(x).max() / F32(448 * 6))
        scale, codes = nvfp4_quantize(torch.from_numpy(x.copy()).reshape(-1, WIDE), 16, number)
        values = f4_unpacked_to_f32(unpack_uint4(codes.view(torch.uint8))).reshape(-1, 16)
        got = (values * (scale.float() * number).reshape(-1, 1)).numpy().ravel()
        kept = numpy.repeat(in_blocks(x, 16)[1] / F32(6) / F32(number) >= 2.0**-6, 16)
        differ = (got != nvfp4(x))[kept].sum()
        print("torchao, NVFP4 %-11s %d of %d, %d differ" % (what, kept.sum(), len(x), differ))


def main():
    with numpy.errstate(all="ignore"):
        now = "\n".join(text()) + "\n"
        if len(sys.argv) < 2:
            with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocks.h"), "w", encoding="utf-8") as f:
                f.write(now)
        else:
            with open(sys.argv[1], encoding="utf-8") as f:
                was = f.read()
            for a, b in zip(was.split("\n"), now.split("\n"), strict=True):
                assert a == b, f"{a}\n is now\n{b}"
            print("%d sums are as stored" % now.count("u },"))
        beside_torchao()


if __name__ == "__main__":
    main()
