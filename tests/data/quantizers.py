"""What the quantizers of PyTorch, torchao and Brevitas give for small calls, and for their gradients; the scales that they make
of ranges; and in how many codes their order of operations differs from x / s, rounded, + z.  Without an argument it writes
quantizers.h (run by hand, with the Python that has them all); with the file as its argument it computes all again and compares:
what is not installed is skipped, and said."""
import os
import sys

import numpy
import torch

try:
    from brevitas.core.bit_width import BitWidthConst
    from brevitas.core.function_wrapper import (CeilSte, FloorSte, Identity, RoundSte, RoundToZeroSte,
                                                TensorClamp, TensorClampSte)
    from brevitas.core.quant import IntQuant, RescalingIntQuant
    from brevitas.core.restrict_val import FloatRestrictValue, PowerOfTwoRestrictValue
    from brevitas.core.scaling import IntScaling, ParameterScaling, PowerOfTwoIntScaling, RuntimeStatsScaling
    from brevitas.core.stats import AbsMax
    from brevitas.core.zero_point import ZeroZeroPoint
    from brevitas.core.function_wrapper.shape import OverTensorView
except ImportError:
    BitWidthConst = None
try:
    from torchao.quantization.qat.fake_quantize_config import IntxFakeQuantizeConfig
    from torchao.quantization.qat.fake_quantizer import IntxFakeQuantizer
    from torchao.quantization.quant_primitives import MappingType, choose_qparams_affine
except ImportError:
    IntxFakeQuantizer = None

ROWS, COLS, GROUP = 3, 8, 4


def waves(scale, speed, *dims):
    n = 1
    for d in dims:
        n *= d
    return (scale * torch.sin(speed * torch.arange(1, n + 1, dtype=torch.float32))).reshape(dims)


X0, DY = waves(3.1, 0.7, ROWS, COLS), waves(1, 1.3, ROWS, COLS)
ONE, SOME = torch.tensor([0.23]), torch.tensor([0.11, 0.37, 0.5])
GROUPS, GROUP_ZEROS = torch.tensor([[0.31, 0.43], [0.7, 0.29], [0.53, 0.41]]), torch.tensor([[3.0, 9.0], [0.0, 15.0], [7.0, 6.0]])


def numbers(t):
    return "{ " + ", ".join(f"{float(v):.9g}" for v in t.detach().flatten().tolist()) + " }"


def row(what, s, z, least, largest, x, y, ds=None, *, axis=-1, block=0, rounding="RNE", mask="BY_CODE", gain=1,
        strict=False):
    s, z = s.detach(), z.detach().expand(s.shape)
    return ("Stored", f'    {{ "{what}", ROUND_{rounding}, MASK_{mask}, {axis}, {block}, {len(s.flatten())}, {numbers(s)}, '
            f"{numbers(z)}, {least}, {largest}, {gain}, {str(ds is not None).lower()}, "
            f"{str(strict).lower()},\n      {numbers(X0)},\n"
            f"      {numbers(DY)},\n      {numbers(y)},\n      {numbers(x.grad)},\n"
            f"      {numbers(ds if ds is not None else s)} }},")


def leaf(t):
    return t.clone().requires_grad_(True)


# ---- PyTorch ----

def torch_rows():
    zero, zeros = torch.tensor([0.0]), torch.tensor([1.0, 0.0, 3.0])
    for least, largest, z in ((-8, 7, zero), (0, 15, torch.tensor([4.0])), (-128, 127, zero), (0, 255, torch.tensor([131.0]))):
        x = leaf(X0)
        y = torch.fake_quantize_per_tensor_affine(x, float(ONE), int(z), least, largest)
        y.backward(DY)
        yield row("torch, one scale", ONE, z, least, largest, x, y)
        x, s = leaf(X0), leaf(ONE)
        y = torch._fake_quantize_learnable_per_tensor_affine(x, s, leaf(z), least, largest, 0.25)
        y.backward(DY)
        yield row("torch, learned", ONE, z, least, largest, x, y, s.grad, gain=0.25)
    for least, largest in ((-8, 7), (-127, 127)):
        x, s = leaf(X0), leaf(SOME)
        y = torch.fake_quantize_per_channel_affine(x, SOME, zeros.int(), 0, least, largest)
        y.backward(DY)
        yield row("torch, rows", SOME, zeros, least, largest, x, y, axis=0)
        x = leaf(X0)
        y = torch._fake_quantize_learnable_per_channel_affine(x, s, leaf(zeros), 0, least, largest, 0.5)
        y.backward(DY)
        yield row("torch, learned rows", SOME, zeros, least, largest, x, y, s.grad, axis=0, gain=0.5)


# ---- Brevitas ----

def int_quant(narrow, signed, rounding=None, clamp=None):
    return IntQuant(narrow_range=narrow, signed=signed, input_view_impl=Identity(),
                    float_to_int_impl=rounding or RoundSte(), tensor_clamp_impl=clamp or TensorClamp())


def limits(bits, signed, narrow):
    top = 2 ** (bits - signed)
    return -(top - narrow) if signed else 0, top - 1 if signed else top - 1 - narrow


def brevitas_rows():
    yield from brevitas_thresholds()
    zero, zeros = torch.tensor([0.0]), torch.tensor([[2.0], [0.0], [5.0]])
    cases = [("Brevitas, rows", 4, True, True, SOME.reshape(3, 1), torch.zeros(3, 1), "RNE", None, None),
             ("Brevitas, rows", 8, True, True, SOME.reshape(3, 1), torch.zeros(3, 1), "RNE", None, None),
             ("Brevitas, unsigned rows with zero points", 4, False, False, SOME.reshape(3, 1), zeros, "RNE", None, None),
             ("Brevitas, unsigned with a zero point", 8, False, False, ONE, torch.tensor([77.0]), "RNE", None, None),
             ("Brevitas, unsigned and narrow", 4, False, True, ONE, torch.tensor([6.0]), "RNE", None, None),
             ("Brevitas, straight through the clamp", 4, True, False, ONE, zero, "RNE", None, TensorClampSte()),
             ("Brevitas, down", 4, True, False, ONE, zero, "FLOOR", FloorSte(), None),
             ("Brevitas, up", 4, True, True, ONE, zero, "CEIL", CeilSte(), None),
             ("Brevitas, towards 0", 4, True, False, ONE, zero, "ZERO", RoundToZeroSte(), None)]
    for what, bits, signed, narrow, scale, z, rounding, by, clamp in cases:
        x, s = leaf(X0), leaf(scale)
        y = int_quant(narrow, signed, by, clamp)(s, z, torch.tensor(float(bits)), x)
        y.backward(DY)
        yield row(what, scale, z, *limits(bits, signed, narrow), x, y, None if clamp else s.grad, axis=0 if scale.dim() > 1 else -1,
                  rounding=rounding, mask="NONE" if clamp else "BY_CODE")


def brevitas_thresholds():
    """Brevitas learns the threshold T = D s, so its gradient is that of s over D; of a power of two its logarithm, so it is
    that of s times s ln 2."""
    for what, bits, narrow in (("Brevitas", 4, False), ("Brevitas", 8, True), ("Brevitas, a power of two", 4, True),
                               ("Brevitas, a power of two", 8, False)):
        pow2 = what != "Brevitas"
        quantizer = RescalingIntQuant(
            int_quant=int_quant(narrow, True),
            int_scaling_impl=PowerOfTwoIntScaling(signed=True) if pow2 else IntScaling(signed=True, narrow_range=narrow),
            scaling_impl=ParameterScaling(
                scaling_init=2.0, scaling_shape=(),
                restrict_scaling_impl=PowerOfTwoRestrictValue() if pow2 else FloatRestrictValue()),
            zero_point_impl=ZeroZeroPoint(), bit_width_impl=BitWidthConst(bits))
        x = leaf(X0)
        y, s, _, _ = quantizer(x)
        y.backward(DY)
        gradient = next(quantizer.parameters()).grad
        gradient = gradient / (s.detach() * float(numpy.log(2))) if pow2 else gradient * (2 ** (bits - 1) - narrow)
        least, largest = limits(bits, True, narrow)
        yield row(what, s.reshape(1), torch.zeros(1), least, largest, x, y, gradient)


# ---- torchao ----

def fake_quantizer(learned=False, **more):
    return IntxFakeQuantizer(IntxFakeQuantizeConfig(is_dynamic=not learned, range_learning=learned, **more))


def torchao_rows():
    """Gradients end at the first and the last code, since those of torch.clamp end at its bounds."""
    x, q = leaf(X0), fake_quantizer(dtype=torch.int8, granularity="per_token", is_symmetric=False)
    y = q(x)
    y.backward(DY)
    yield row("torchao, tokens", q.scale.reshape(ROWS), q.zero_point.reshape(ROWS), -128, 127, x, y, axis=0, strict=True)
    q = fake_quantizer(dtype=torch.int4, group_size=GROUP, is_symmetric=True)
    q(X0)
    absmax = q.scale.detach()
    for what, scale, zero, least, learned in (("torchao, groups of its own scales", absmax, torch.zeros(ROWS, 2), -8, False),
                                              ("torchao, groups", GROUPS, torch.zeros(ROWS, 2), -8, True),
                                              ("torchao, groups with zero points", GROUPS, GROUP_ZEROS, 0, False)):
        q = fake_quantizer(learned, dtype=torch.int4 if least else torch.uint4, group_size=GROUP, is_symmetric=True)
        q.scale, q.zero_point = leaf(scale), zero
        q._should_compute_qparams = lambda: False
        x = leaf(X0)
        y = q(x)
        y.backward(DY)
        yield row(what + (", learned" if learned else ""), scale, zero, least, least + 15, x, y, q.scale.grad if learned else None,
                  axis=1, block=GROUP, strict=True)


# ---- scales of ranges ----

def ranges():
    for lo, hi in ((-3.1, 2.2), (-0.7, 5.5), (0.4, 9.9), (-6.25, -0.5), (-1e-3, 3e-3)):
        seen = torch.tensor([[lo, hi]])
        s = int(lo < 0)
        observer = torch.ao.quantization.MinMaxObserver(dtype=torch.quint8, eps=1e-12)
        observer(seen)
        scale, zero = observer.calculate_qparams()
        yield "Range", range_row("torch", lo, hi, 0, 255, 0, 0, scale, zero)
        if IntxFakeQuantizer:
            scale, zero = choose_qparams_affine(seen, MappingType.ASYMMETRIC, (1, 2), torch.int8, -128, 127, eps=1e-12)
            yield "Range", range_row("torchao", lo, hi, -128, 127, 0, 0, scale, zero)
        if BitWidthConst:
            for bits, pow2 in ((8, False), (4, False), (8, True), (4, True)):
                yield "Range", brevitas_range(lo, hi, seen, bits, pow2)


def range_row(what, lo, hi, least, largest, symmetric, pow2, scale, zero):
    return (f'    {{ "{what}", {lo:.9g}, {hi:.9g}, {least}, {largest}, {symmetric}, {pow2}, {float(scale):.9g}, '
            f"{float(zero):.9g} }},")


def brevitas_range(lo, hi, seen, bits, pow2):
    """Powers of two are those above: its own default takes the nearest, which holds the largest number back."""
    scaling = RuntimeStatsScaling(AbsMax(), OverTensorView(), (), scaling_stats_momentum=1.0, dtype=torch.float32, device="cpu",
                                  restrict_scaling_impl=PowerOfTwoRestrictValue(CeilSte()) if pow2 else FloatRestrictValue())
    steps = PowerOfTwoIntScaling(signed=True) if pow2 else IntScaling(signed=True, narrow_range=True)
    scale = scaling(seen) / steps(torch.tensor(float(bits)))
    return range_row("Brevitas", lo, hi, -(2 ** (bits - 1) - 1), 2 ** (bits - 1) - 1, 1, int(pow2), scale, 0)


# ---- orders of operations ----

SCALES = 1024


def orders():
    """Codes of half-steps, so that every second one ties, of 1024 scales: how many are not those of rint(x / s) + z.  Numbers
    and scales are products of f32."""
    half = torch.arange(-SCALES // 2, SCALES // 2, dtype=torch.float32) * 0.5
    scale = torch.tensor([0.01]) * torch.arange(1, SCALES + 1, dtype=torch.float32)
    x = half.reshape(1, -1) * scale.reshape(-1, 1)
    steps = scale.reshape(-1, 1).numpy()
    for z, least, largest in ((0, -128, 127), (3, 0, 255), (7, -128, 127), (0, -8, 7), (3, -8, 7), (8, 0, 15)):
        ours = numpy.clip(numpy.rint(x.numpy() / steps) + numpy.float32(z), least, largest)
        zeros = torch.full((SCALES,), z)

        def counted(what, y):
            theirs = numpy.rint(y.detach().numpy() / steps) + numpy.float32(z)
            return "Order", f'    {{ "{what}", {z}, {least}, {largest}, {int((theirs != ours).sum())} }},'

        yield counted("torch, one scale", torch.stack([
            torch.fake_quantize_per_tensor_affine(r, float(s), z, least, largest) for r, s in zip(x, scale)]))
        yield counted("torch, rows", torch.fake_quantize_per_channel_affine(x, scale, zeros.int(), 0, least, largest))
        if IntxFakeQuantizer:
            kinds = {(-128, 127): torch.int8, (0, 255): torch.uint8, (-8, 7): torch.int4, (0, 15): torch.uint4}
            q = fake_quantizer(dtype=kinds[least, largest], group_size=SCALES, is_symmetric=False)
            q.scale, q.zero_point = scale.reshape(-1, 1), zeros.reshape(-1, 1).float()
            q._should_compute_qparams = lambda: False
            yield counted("torchao", q(x))
        if BitWidthConst:
            bits = torch.tensor(float(numpy.log2(largest - least + 1)))
            yield counted("Brevitas", int_quant(False, least < 0)(scale.reshape(-1, 1), zeros.reshape(-1, 1).float(), bits, x))


def all_rows():
    yield from torch_rows()
    if BitWidthConst:
        yield from brevitas_rows()
    if IntxFakeQuantizer:
        yield from torchao_rows()
    yield from ranges()
    yield from orders()


NAMES = {"Stored": "stored", "Range": "ranges", "Order": "orders"}
HEAD, TAIL = "/* Written by quantizers.py. */\n/* clang-format off */\n", "/* clang-format on */\n"


def written(rows):
    text = HEAD
    for kind, name in NAMES.items():
        text += f"static const {kind} {name}[] = {{\n" + "\n".join(r for k, r in rows if k == kind) + "\n};\n"
    return text + TAIL


def values(text):
    """The numbers of a row."""
    words = text.split('",')[1].replace("{", " ").replace("}", " ").replace(";", " ").replace(",", " ").split()
    return [float(w) for w in words if w[0] in "-0123456789"]


def of_package(text, word):
    return text.lstrip().startswith('{ "' + word)


def compare(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    kept = ['    { "' + r.split("\n};")[0] for r in text.split('    { "')[1:]]
    for installed, word in ((BitWidthConst, "Brevitas"), (IntxFakeQuantizer, "torchao")):
        if not installed:
            print(f"skipped: {word}; pip install {word.lower()}")
            kept = [r for r in kept if not of_package(r, word)]
    found = [r for _, r in sorted(all_rows(), key=lambda r: list(NAMES).index(r[0]))]
    assert len(kept) == len(found), f"{len(kept)} rows are stored, {len(found)} computed"
    for a, b in zip(kept, found):
        for v, w in zip(values(a), values(b), strict=True):
            assert abs(v - w) <= 2e-7 * abs(v) + 1e-12, f"{a}\n is now\n{b}"
    print(f"{len(found)} calls are as stored")


if len(sys.argv) > 1:
    compare(sys.argv[1])
else:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantizers.h"), "w", encoding="utf-8") as out:
        out.write(written(list(all_rows())))
