"""Makes the models of tests/data/qonnx with what they compute: a folder for each call of QONNX's operators, whose answers are
those of the formulas that QONNX states, and networks as Brevitas exports them, whose answers are Brevitas'.

usage: qonnx.py FOLDER [calls|networks|refused]      networks want brevitas and onnxoptimizer; refused: calls that
                                                     nobody can hold, a file each, into another folder
"""
import os
import sys
import warnings

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "qonnx.custom_op.general"
F = numpy.float32

# ---- formulas ----

ROUNDINGS = {
    "ROUND": numpy.round, "CEIL": numpy.ceil, "FLOOR": numpy.floor, "DOWN": numpy.trunc,
    "UP": lambda v: numpy.copysign(numpy.ceil(numpy.abs(v)), v),
}


def ends(bits, signed, narrow):
    if signed:
        return -(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1
    return 0, 2 ** bits - 1 - narrow


def by_quant(x, scale, zero, bits, signed=1, narrow=0, rounding_mode="ROUND"):
    v = (x / scale + zero).astype(F)
    if bits == 1 and signed:
        return (numpy.where(v >= 0, F(1), F(-1)) - zero) * scale
    return (ROUNDINGS[rounding_mode.upper()](numpy.clip(v, *ends(int(bits), signed, narrow))) - zero) * scale


def by_sign(x, scale):
    return numpy.where(x >= 0, F(1), F(-1)) * scale


def by_trunc(x, scale, zero, bits, out_scale, out_bits, signed=1, narrow=0, rounding_mode="FLOOR"):
    v = numpy.round(x / scale + zero) / F(2) ** numpy.round(numpy.log2(out_scale / scale))
    v = ROUNDINGS[rounding_mode.upper()](numpy.clip(v, *ends(int(out_bits), signed, narrow)))
    return v * out_scale


def by_old_trunc(x, scale, zero, bits, out_bits, rounding_mode="FLOOR"):
    return ROUNDINGS[rounding_mode](numpy.round(x / scale + zero) / F(2) ** (bits - out_bits)) * scale


def by_float(x, scale, exponent, mantissa, bias, most, **_):
    v = (x / scale).astype(F)
    power = numpy.where(v == 0, -200, numpy.frexp(numpy.where(v == 0, 1, v))[1] - 1)
    step = F(2) ** (numpy.maximum(power, 1 - bias) - mantissa).astype(F)
    return numpy.clip(numpy.round(v / step) * step, -most, most) * scale


# ---- calls ----

def numbers(shape, step, seed):
    """Numbers of which every third lies halfway between two codes, and some beyond them."""
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal(shape) * 9
    ties = numpy.floor(x) + .5
    return (numpy.where(rng.integers(0, 3, shape) == 0, ties, x) * step).astype(F)


def channels(n, rank, first=.5):
    return (F(first) * F(2) ** numpy.arange(n, dtype=F)).reshape((n,) + (1,) * (rank - 1))


def calls():
    q = lambda scale, zero, bits, **at: ("Quant", by_quant, (scale, zero, bits), dict({"signed": 1, "narrow": 0}, **at))
    yield "int8", q(.25, 0, 8, rounding_mode="ROUND")
    yield "int3-narrow", q(.5, 0, 3, narrow=1)
    yield "int4-full", q(.5, 0, 4)
    yield "uint4", q(.5, 0, 4, signed=0)
    yield "uint4-narrow", q(.5, 0, 4, signed=0, narrow=1)
    yield "uint1", q(.5, 0, 1, signed=0)
    yield "int1", q(.5, 0, 1)
    yield "int12", q(.0625, 0, 12)
    yield "uint12", q(.0625, 0, 12, signed=0)
    yield "int24", q(.0625, 0, 24)
    yield "ceil", q(.5, 0, 5, rounding_mode="CEIL")
    yield "floor", q(.5, 0, 5, rounding_mode="floor")
    yield "up", q(.5, 0, 5, rounding_mode="UP")
    yield "down", q(.5, 0, 5, rounding_mode="DOWN")
    yield "odd-zero", q(.5, 3, 8)
    yield "even-zero", q(.5, 10, 8, signed=0)
    yield "channel", q(channels(4, 3), 0, 4, narrow=1)
    yield "inner-channel", q(channels(3, 2), 0, 4)
    yield "channel-zeros", q(channels(4, 3), F([[[0]], [[1]], [[-2]], [[5]]]), 4)
    yield "one-channel", q(numpy.full((1, 1, 1), .5, F), 0, 6)
    yield "bipolar", ("BipolarQuant", by_sign, (.75,), {})
    yield "bipolar-channel", ("BipolarQuant", by_sign, (channels(4, 3),), {})
    t = lambda *ins, **at: ("Trunc", by_trunc, ins, at)
    yield "trunc-floor", t(.125, 0, 8, .5, 6, rounding_mode="FLOOR", signed=1, narrow=0)
    yield "trunc-round", t(.125, 0, 8, .25, 4, rounding_mode="round", signed=0)
    yield "trunc-ceil", t(.125, 0, 8, .5, 4, rounding_mode="CEIL", signed=1, narrow=1)
    yield "trunc-unsaid", t(.125, 0, 8, .25, 8)
    yield "trunc-1", ("Trunc", by_old_trunc, (.125, 0, 8, 6), {"rounding_mode": "FLOOR"})
    f = lambda e, m, bias, most: ("FloatQuant", by_float, (.25, e, m, bias, most), {
        "has_inf": 0, "has_nan": int(most in (448, 57344)), "has_subnormal": 1, "saturation": 1})
    yield "e4m3", f(4, 3, 7, 448)
    yield "e5m2", f(5, 2, 15, 57344)
    yield "e2m3", f(2, 3, 1, 7.5)
    yield "e3m2", f(3, 2, 3, 28)
    yield "e2m1", f(2, 1, 1, 6)


def store(folder, name, model, x, y):
    at = os.path.join(folder, name)
    os.makedirs(os.path.join(at, "test_data_set_0"), exist_ok=True)
    with open(os.path.join(at, "model.onnx"), "wb") as f:
        f.write(model)
    for i, v in (("input_0", x), ("output_0", y)):
        with open(os.path.join(at, "test_data_set_0", i + ".pb"), "wb") as f:
            f.write(numpy_helper.from_array(numpy.ascontiguousarray(v, F)).SerializeToString())


def model_of(name, op, shape, operands, attributes, kind=TensorProto.FLOAT):
    """None as an operand: one that is given when it runs."""
    inputs = ["x"] + ["operand%d" % i for i in range(len(operands))]
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for v, n in zip(operands, inputs[1:]) if v is None]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], "/" + op, domain=DOMAIN, **attributes)], name,
        [helper.make_tensor_value_info("x", kind, shape)] + given, [helper.make_tensor_value_info("y", kind, shape)],
        [numpy_helper.from_array(numpy.asarray(v, F), n) for v, n in zip(operands, inputs[1:]) if v is not None])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1 if name == "trunc-1" else 2)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def make_calls(folder):
    for k, (name, (op, formula, operands, attributes)) in enumerate(calls()):
        operands = [numpy.asarray(v, F) for v in operands]
        x = numbers((4, 3, 5), operands[0], k)
        store(folder, name, model_of(name, op, x.shape, operands, attributes), x, formula(x, *operands, **attributes))


# ---- refused ----

def refused():
    at = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    floats = {"has_inf": 0, "has_nan": 0, "has_subnormal": 1, "saturation": 1}
    yield "given-bits", "Quant", (.5, 0, None), at
    yield "given-scale", "Quant", (None, 0, 4), at
    yield "halves", "Quant", (.5, 0, 4), at
    yield "half-bits", "Quant", (.5, 0, 4.5), at
    yield "many-bits", "Quant", (.5, 0, 40), at
    yield "unsigned-bits", "Quant", (.5, 0, 20), dict(at, signed=0)
    yield "one-code", "Quant", (.5, 0, 1), dict(at, signed=0, narrow=1)
    yield "two-widths", "Quant", (.5, 0, [4, 4]), at
    yield "half-up", "Quant", (.5, 0, 4), dict(at, rounding_mode="HALF_UP")
    yield "half-zero", "Quant", (.5, .5, 4), at
    yield "far-zero", "Quant", (.5, 9, 4), at
    yield "shifted-bit", "Quant", (.5, 1, 1), at
    yield "three-zeros", "Quant", (channels(4, 3), [0, 1, 2], 4), at
    yield "two-axes", "Quant", (numpy.full((4, 3, 1), .5), 0, 4), at
    yield "beside", "Quant", (numpy.full((7, 1), .5), 0, 4), at
    yield "unsaid", "Quant", (.5, 0, 4), {"signed": 1}
    yield "unknown", "Quant", (.5, 0, 4), dict(at, blocks=4)
    yield "three-inputs", "Quant", (.5, 0), at
    yield "four-inputs", "BipolarQuant", (.5, 0, 1), {}
    yield "trunc-zero", "Trunc", (.125, 1, 8, .5, 6), {"rounding_mode": "FLOOR", "signed": 1}
    yield "trunc-channel", "Trunc", (channels(4, 3), 0, 8, .5, 6), {"rounding_mode": "FLOOR", "signed": 1}
    yield "trunc-scale", "Trunc", (.125, 0, 8, -1, 6), {"rounding_mode": "FLOOR", "signed": 1}
    yield "float-bias", "FloatQuant", (.5, 4, 3, 9, 448), floats
    yield "float-cut", "FloatQuant", (.5, 4, 3, 7, 448), dict(floats, saturation=0)
    yield "float-normal", "FloatQuant", (.5, 4, 3, 7, 448), dict(floats, has_subnormal=0)
    yield "float-up", "FloatQuant", (.5, 4, 3, 7, 448), dict(floats, rounding_mode="CEIL")


def make_refused(folder):
    for name, op, operands, attributes in refused():
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(model_of(name, op, (4, 3, 5), operands, attributes,
                             TensorProto.FLOAT16 if name == "halves" else TensorProto.FLOAT))


# ---- networks ----

def networks():
    import brevitas.nn as qnn
    import torch
    from brevitas.quant import (Fp8e4m3OCPActPerTensorFloat, Fp8e4m3OCPWeightPerTensorFloat, Int8ActPerTensorFixedPoint,
                                Int8WeightPerChannelFloat, Int32Bias, ShiftedUint8ActPerTensorFloat,
                                SignedBinaryWeightPerTensorConst, SignedTernaryWeightPerTensorConst)

    class Cnn(torch.nn.Module):
        """Four bits, a truncated pool, biases as integers."""
        shape = (1, 8, 8)

        def __init__(self):
            super().__init__()
            self.data = qnn.QuantIdentity(bit_width=8, return_quant_tensor=True)
            self.conv = qnn.QuantConv2d(1, 4, 3, weight_bit_width=4, bias_quant=Int32Bias, return_quant_tensor=True)
            self.relu = qnn.QuantReLU(bit_width=4, return_quant_tensor=True)
            self.pool = qnn.TruncAvgPool2d(2, bit_width=4)
            self.head = qnn.QuantLinear(36, 3, bias=True, weight_bit_width=3)

        def forward(self, x):
            return self.head(self.pool(self.relu(self.conv(self.data(x)))).flatten(1))

    class Channels(torch.nn.Module):
        """Scales a channel, powers of two, a sum of two branches."""
        shape = (3, 6, 6)

        def __init__(self):
            super().__init__()
            self.data = qnn.QuantIdentity(act_quant=Int8ActPerTensorFixedPoint)
            self.conv = qnn.QuantConv2d(3, 8, 3, padding=1, bias=False, weight_quant=Int8WeightPerChannelFloat)
            self.side = qnn.QuantConv2d(3, 8, 1, bias=False, weight_quant=Int8WeightPerChannelFloat, weight_bit_width=5)
            self.sum = qnn.QuantIdentity(bit_width=6)
            self.head = qnn.QuantLinear(8, 3, bias=True)

        def forward(self, x):
            x = self.data(x)
            return self.head(torch.relu(self.sum(self.conv(x) + self.side(x))).mean((2, 3)))

    class Signs(torch.nn.Module):
        """Weights of one bit and of three numbers."""
        shape = (12,)

        def __init__(self):
            super().__init__()
            self.data = qnn.QuantIdentity(bit_width=4)
            self.one = qnn.QuantLinear(12, 16, bias=False, weight_quant=SignedBinaryWeightPerTensorConst)
            self.relu = qnn.QuantReLU(bit_width=2)
            self.two = qnn.QuantLinear(16, 3, bias=True, weight_quant=SignedTernaryWeightPerTensorConst)

        def forward(self, x):
            return self.two(self.relu(self.one(self.data(x))))

    class Shifted(torch.nn.Module):
        """Data with a code of 0 that is not 0."""
        shape = (10,)

        def __init__(self):
            super().__init__()
            self.data = qnn.QuantIdentity(act_quant=ShiftedUint8ActPerTensorFloat)
            self.one = qnn.QuantLinear(10, 12, bias=True, weight_bit_width=8)
            self.mid = qnn.QuantIdentity(act_quant=ShiftedUint8ActPerTensorFloat)
            self.two = qnn.QuantLinear(12, 3, bias=True, weight_bit_width=8)

        def forward(self, x):
            return self.two(self.mid(torch.tanh(self.one(self.data(x)))))

    class Floats(torch.nn.Module):
        """Floats of eight bits."""
        shape = (10,)

        def __init__(self):
            super().__init__()
            self.one = qnn.QuantLinear(10, 12, bias=True, weight_quant=Fp8e4m3OCPWeightPerTensorFloat,
                                       input_quant=Fp8e4m3OCPActPerTensorFloat)
            self.two = qnn.QuantLinear(12, 3, bias=True, weight_quant=Fp8e4m3OCPWeightPerTensorFloat,
                                       input_quant=Fp8e4m3OCPActPerTensorFloat)

        def forward(self, x):
            return self.two(torch.relu(self.one(x)))

    return [Cnn, Channels, Signs, Shifted, Floats]


def make_networks(folder, seed=0):
    warnings.filterwarnings("ignore")
    import torch
    from brevitas.export import export_qonnx
    for k, kind in enumerate(networks()):
        torch.manual_seed(seed + k)
        net = kind()
        for _ in range(4):
            net(torch.randn(8, *kind.shape))
        net.eval()
        x = torch.randn(8, *kind.shape)
        path = os.path.join(folder, "network.onnx")
        with torch.no_grad():
            y = net(x)
            export_qonnx(net, x, path, dynamo=False, input_names=["x"], output_names=["y"])
        with open(path, "rb") as f:
            store(folder, "brevitas-" + kind.__name__.lower(), f.read(), x.numpy(), y.numpy())
        os.remove(path)


if __name__ == "__main__":
    what = sys.argv[2:] or ["calls", "networks"]
    if "calls" in what:
        make_calls(sys.argv[1])
    if "refused" in what:
        make_refused(sys.argv[1])
    if "networks" in what:
        make_networks(sys.argv[1])
