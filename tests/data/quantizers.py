"""What PyTorch's and Brevitas' quantizers give for small calls, and for their gradients.  Without an argument it writes
quantizers.h (run by hand, with the Python that has torch and Brevitas); with the file as its argument it computes all again
and compares: what is not installed is skipped, and said."""
import os
import sys

import torch

try:
    from brevitas.core.bit_width import BitWidthConst
    from brevitas.core.function_wrapper import RoundSte, TensorClamp
    from brevitas.core.function_wrapper.shape import Identity
    from brevitas.core.quant import IntQuant, RescalingIntQuant
    from brevitas.core.restrict_val import FloatRestrictValue
    from brevitas.core.scaling import IntScaling, ParameterScaling
    from brevitas.core.zero_point import ZeroZeroPoint
except ImportError:
    BitWidthConst = None

ROWS, COLS = 3, 8


def waves(scale, speed, *dims):
    n = 1
    for d in dims:
        n *= d
    return (scale * torch.sin(speed * torch.arange(1, n + 1, dtype=torch.float32))).reshape(dims)


def numbers(t):
    return "{ " + ", ".join(f"{float(v):.9g}" for v in t.detach().flatten().tolist()) + " }"


def row(what, axis, s, z, least, largest, gain, learned, x, dy, y, dx, ds):
    return (f'    {{ "{what}", {axis}, {len(s.flatten())}, {numbers(s)}, {numbers(z)}, {least}, {largest}, {gain}, '
            f"{str(learned).lower()},\n      {numbers(x)},\n      {numbers(dy)},\n      {numbers(y)},\n"
            f"      {numbers(dx)},\n      {numbers(ds)} }},")


def torch_rows():
    x0, dy = waves(3.1, 0.7, ROWS, COLS), waves(1, 1.3, ROWS, COLS)
    one, zero = torch.tensor([0.23]), torch.tensor([0.0])
    some, zeros = torch.tensor([0.11, 0.37, 0.5]), torch.tensor([1.0, 0.0, 3.0])
    for least, largest, z in ((-8, 7, zero), (0, 15, torch.tensor([4.0])), (-128, 127, zero)):
        x = x0.clone().requires_grad_(True)
        y = torch.fake_quantize_per_tensor_affine(x, float(one), int(z), least, largest)
        y.backward(dy)
        yield "torch, one scale", row("torch, one scale", -1, one, z, least, largest, 1, False, x, dy, y, x.grad, one)
        x, s = x0.clone().requires_grad_(True), one.clone().requires_grad_(True)
        y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z.clone().requires_grad_(True), least, largest, 0.25)
        y.backward(dy)
        yield "torch, learned", row("torch, learned", -1, one, z, least, largest, 0.25, True, x, dy, y, x.grad, s.grad)
    for least, largest in ((-8, 7), (-127, 127)):
        x, s = x0.clone().requires_grad_(True), some.clone().requires_grad_(True)
        y = torch.fake_quantize_per_channel_affine(x, some, zeros.int(), 0, least, largest)
        y.backward(dy)
        yield "torch, rows", row("torch, rows", 0, some, zeros, least, largest, 1, False, x, dy, y, x.grad, some)
        x = x0.clone().requires_grad_(True)
        y = torch._fake_quantize_learnable_per_channel_affine(x, s, zeros.clone().requires_grad_(True), 0, least, largest,
                                                              0.5)
        y.backward(dy)
        yield "torch, learned rows", row("torch, learned rows", 0, some, zeros, least, largest, 0.5, True, x, dy, y,
                                         x.grad, s.grad)


def brevitas_rows():
    """Brevitas learns the threshold T = D s, so its gradient is that of s over D."""
    x0, dy = waves(3.1, 0.7, ROWS, COLS), waves(1, 1.3, ROWS, COLS)
    for bits, narrow in ((4, False), (8, True)):
        ints = IntQuant(narrow_range=narrow, signed=True, input_view_impl=Identity(), float_to_int_impl=RoundSte(),
                        tensor_clamp_impl=TensorClamp())
        quantizer = RescalingIntQuant(
            int_quant=ints, int_scaling_impl=IntScaling(signed=True, narrow_range=narrow),
            scaling_impl=ParameterScaling(scaling_init=2.0, scaling_shape=(), restrict_scaling_impl=FloatRestrictValue()),
            zero_point_impl=ZeroZeroPoint(), bit_width_impl=BitWidthConst(bits))
        x = x0.clone().requires_grad_(True)
        y, s, _, _ = quantizer(x)
        y.backward(dy)
        top = 2 ** (bits - 1)
        gradient = next(quantizer.parameters()).grad * (top - narrow)
        yield "Brevitas", row("Brevitas", -1, s.detach(), torch.zeros(1), -top + narrow, top - 1, 1, True, x, dy, y,
                              x.grad, gradient)


def all_rows():
    yield from torch_rows()
    if BitWidthConst:
        yield from brevitas_rows()


HEAD = "/* Written by quantizers.py. */\n/* clang-format off */\nstatic const Stored stored[] = {\n"
TAIL = "};\n/* clang-format on */\n"


def values(text):
    """The numbers of a row."""
    return [float(w) for w in text.split('",')[1].replace("{", " ").replace("}", " ").replace(",", " ").split()
            if w not in ("true", "false")]


def compare(path):
    with open(path, encoding="utf-8") as f:
        kept = ['    { "' + r for r in f.read().split(TAIL)[0].split('    { "')[1:]]
    if not BitWidthConst:
        print("skipped: Brevitas is not installed")
        kept = [r for r in kept if "Brevitas" not in r]
    found = [text for _, text in all_rows()]
    assert len(kept) == len(found), f"{len(kept)} rows are stored, {len(found)} computed"
    for a, b in zip(kept, found):
        for v, w in zip(values(a), values(b), strict=True):
            assert abs(v - w) <= 2e-7 * abs(v) + 1e-12, f"{a}\n is now\n{b}"
    print(f"{len(found)} calls are as stored")


if len(sys.argv) > 1:
    compare(sys.argv[1])
else:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantizers.h"), "w", encoding="utf-8") as out:
        out.write(HEAD + "\n".join(text for _, text in all_rows()) + "\n" + TAIL)
