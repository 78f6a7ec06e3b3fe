"""Casts to formats of few bits and back beside those of ml_dtypes: every bit pattern of bf16 and f16 (every number of each
format is among them), and of every two neighbours of a format the middle and the f32 numbers beside it.

usage: few_bits.py QCC FOLDER
"""
import os
import subprocess
import sys

import ml_dtypes
import numpy

# ours, theirs, whether a cast that does not saturate is one of theirs, too (formats with an infinity or a NaN)
FORMATS = [
    ("f8e4m3", ml_dtypes.float8_e4m3fn, True),
    ("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, True),
    ("f8e5m2", ml_dtypes.float8_e5m2, True),
    ("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, True),
    ("f6e2m3", ml_dtypes.float6_e2m3fn, False),
    ("f6e3m2", ml_dtypes.float6_e3m2fn, False),
    ("f4e2m1", ml_dtypes.float4_e2m1fn, False),
]


def numbers():
    patterns = numpy.arange(1 << 16, dtype=numpy.uint32)
    parts = [(patterns << 16).view(numpy.float32), patterns.astype(numpy.uint16).view(numpy.float16).astype(numpy.float32)]
    for _, theirs, _ in FORMATS:
        codes = numpy.arange(1 << ml_dtypes.finfo(theirs).bits, dtype=numpy.uint8).view(theirs).astype(numpy.float64)
        ends = numpy.unique(codes[numpy.isfinite(codes)])
        beyond = [2 * ends[0] - ends[1], 2 * ends[-1] - ends[-2]]  # where numbers leave the format
        ends = numpy.sort(numpy.concatenate([ends, beyond]))
        middle = ((ends[1:] + ends[:-1]) / 2).astype(numpy.float32)
        parts += [middle, numpy.nextafter(middle, numpy.float32(-numpy.inf)), numpy.nextafter(middle, numpy.float32(numpy.inf))]
    return numpy.concatenate(parts)


def scales(x):
    """What E8M0 makes of numbers above 0: the nearest power of two, in three ways to round."""
    x = x[numpy.isfinite(x) & (x >= 2.0**-126) & (x < 2.0**127)].astype(numpy.float64)
    below = numpy.exp2(numpy.floor(numpy.log2(x)))
    below = numpy.where(below > x, below / 2, numpy.where(2 * below <= x, 2 * below, below))
    up = numpy.where(below < x, 2 * below, below)
    nearest = x.astype(numpy.float32).astype(ml_dtypes.float8_e8m0fnu).astype(numpy.float64)
    return x.astype(numpy.float32), {"up": up, "down": below, "nearest": nearest}


def ours(qcc, x, casts):
    """Of each cast, a line of .qir with %x, the numbers that come back."""
    numpy.save("x.npy", x)
    lines, outputs = [], []
    for i, (dtype, attributes) in enumerate(casts):
        lines += ["    %%c%d: %s[%d] = cast(%%x, to=%s%s)" % (i, dtype, len(x), dtype, attributes),
                  "    %%y%d: f32[%d] = cast(%%c%d, to=f32)" % (i, len(x), i)]
        outputs += ["--output", "y%d=y%d.npy" % (i, i)]
    with open("casts.qir", "w", encoding="utf-8") as f:
        f.write("graph @f(%%x: f32[%d]) -> (%s) {\n%s\n}\n" % (
            len(x), ", ".join("%%y%d" % i for i in range(len(casts))), "\n".join(lines)))
    subprocess.run([qcc, "run", "casts.qir", "--input", "x=x.npy", *outputs], check=True)
    return [numpy.load("y%d.npy" % i) for i in range(len(casts))]


def compare(what, x, got, want):
    same = (got.view(numpy.uint32) == want.view(numpy.uint32)) | (numpy.isnan(got) & numpy.isnan(want))
    print("%-24s %d numbers, %d differ" % (what, len(x), (~same).sum()))
    if not same.all():
        i = int(numpy.argmin(same))
        sys.exit("%s of %r is %r here, %r there" % (what, x[i], got[i], want[i]))


def main():
    qcc = os.path.abspath(sys.argv[1])
    os.chdir(sys.argv[2])
    x = numbers()
    casts = [(ours_, ", saturate=%s" % word) for ours_, _, open_ in FORMATS for word in (["true", "false"] if open_ else ["true"])]
    theirs = {ours_: dtype for ours_, dtype, _ in FORMATS}
    with numpy.errstate(all="ignore"):
        for (dtype, attributes), got in zip(casts, ours(qcc, x, casts)):
            kind = theirs[dtype]
            most = float(ml_dtypes.finfo(kind).max)
            given = numpy.clip(x, -most, most) if "true" in attributes else x
            kept = numpy.full(len(x), True) if (dtype, kind, True) in FORMATS else ~numpy.isnan(x)  # the others have no NaN
            compare(dtype + attributes, x[kept], got[kept], given[kept].astype(kind).astype(numpy.float32))
        positive, wanted = scales(x)
        for (way, want), got in zip(wanted.items(), ours(qcc, positive, [("f8e8m0", ", round_mode=" + w) for w in wanted])):
            compare("f8e8m0, " + way, positive, got, want.astype(numpy.float32))


if __name__ == "__main__":
    main()
