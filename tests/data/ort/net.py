"""Graphs in Q/DQ form, written as the calls that they make; and the list of cases."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "s32": np.int32}


class Net:
    """A graph that is written as the calls that it makes; values are names."""

    def __init__(self, act="u8", weight="s8", per="tensor", opset=17):
        self.act, self.weight, self.per, self.opset = act, weight, per, opset
        self.nodes, self.inputs, self.outputs, self.initializers = [], [], [], []
        self.rng = np.random.default_rng(1)

    def name(self, what):
        return "%s_%d" % (what, len(self.nodes) + len(self.initializers))

    def const(self, value, dtype=np.float32):
        name = self.name("c")
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def input(self, *shape):
        name = "x%d" % len(self.inputs)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def op(self, word, *ins, n=1, domain="", **attributes):
        outs = [self.name(word.lower()) for _ in range(1)] if n == 1 else [
            self.name(word.lower()) + "_%d" % i for i in range(n)]
        self.nodes.append(helper.make_node(word, list(ins), outs, domain=domain, name=outs[0] + "_node", **attributes))
        return outs[0] if n == 1 else outs

    def zero_of(self, zero, act):
        if zero is None:
            zero = {"u8": 128, "s8": 0, "u16": 32768, "s16": 0}[act]
        return self.const(zero, TYPES[act])

    def q(self, x, scale=0.0625, zero=None, act=None):
        act = act or self.act
        return self.op("QuantizeLinear", x, self.const(scale), self.zero_of(zero, act))

    def dq(self, x, scale=0.0625, zero=None, act=None):
        act = act or self.act
        return self.op("DequantizeLinear", x, self.const(scale), self.zero_of(zero, act))

    def qdq(self, x, scale=0.0625, zero=None, act=None):
        return self.dq(self.q(x, scale, zero, act), scale, zero, act)

    def qrelu(self, x, scale=0.0625):
        """A pair of which nothing is below zero: the code of 0 is the least one."""
        return self.qdq(x, scale, 0 if self.act == "u8" else -128)

    def codes(self, shape, dtype):
        low, high = (-127, 128) if dtype == np.int8 else (0, 256)
        return self.const(self.rng.integers(low, high, shape), dtype)

    def w(self, shape, axis=0):
        """A weight that is stored as codes; its scale is that of the bias behind it."""
        dtype = TYPES[self.weight]
        zero = 128 if self.weight == "u8" else 0
        codes = self.codes(shape, dtype)
        if self.per == "tensor":
            self.scale = np.float32(0.0078125)
            return self.op("DequantizeLinear", codes, self.const(self.scale), self.const(zero, dtype))
        n = shape[axis]
        self.scale = (2.0 ** -self.rng.integers(6, 9, n)).astype(np.float32)
        return self.op("DequantizeLinear", codes, self.const(self.scale), self.const([zero] * n, dtype), axis=axis)

    def fw(self, *shape):
        return self.const(self.rng.uniform(-1, 1, shape))

    def bias(self, n, scale=0.0625, off=1.0):
        """A bias as int32 codes of the scale of the input times that of the weight before it, times `off`."""
        codes = self.const(self.rng.integers(-1000, 1000, n), np.int32)
        by = (np.float32(scale) * self.scale * np.float32(off)).astype(np.float32)
        if self.per == "tensor":
            return self.op("DequantizeLinear", codes, self.const(by), self.const(0, np.int32))
        return self.op("DequantizeLinear", codes, self.const(by), self.const([0] * n, np.int32), axis=0)

    def out(self, *names):
        for name in names:
            self.outputs.append(helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None))
        return self

    def model(self):
        for value in self.outputs:
            value.ClearField("type")
        graph = helper.make_graph(self.nodes, "case", self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset),
                                                        helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model)
        for value in model.graph.output:
            if not value.type.HasField("tensor_type"):
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        return model


CASES = {}


def case(*also):
    """A case for each of the variants: activations u8 and s8, and what `also` says: weights by tensor and channel."""
    def add(build):
        variants = [(act, per) for act in ("u8", "s8") for per in (("tensor", "channel") if "per" in also else ("",))]
        for act, per in variants if "once" not in also else [("u8", "tensor")]:
            name = "-".join([build.__name__] + [v for v in (act, per) if v and "once" not in also])
            CASES[name] = (build, act, per or "tensor")
        return build
    return add


# ---- what many cases are made of ----


def image(n):
    return n.qdq(n.input(1, 8, 8, 8))


def conv(n, x, bias="codes", shape=(8, 8, 3, 3), off=1.0, **attributes):
    w = n.w(shape)
    ins = [x, w]
    if bias == "codes":
        ins.append(n.bias(shape[0], off=off))
    elif bias == "float":
        ins.append(n.fw(shape[0]))
    return n.op("Conv", *ins, **dict({"pads": [1, 1, 1, 1]}, **attributes))


def rows(n, width=16):
    return n.qdq(n.input(4, width))


def gemm(n, x, bias="codes", trans=1, width=16, out=8, **attributes):
    w = n.w((out, width) if trans else (width, out), 0 if trans else 1)
    ins = [x, w]
    if bias == "codes":
        ins.append(n.bias(out))
    elif bias == "float":
        ins.append(n.fw(out))
    return n.op("Gemm", *ins, transB=trans, **attributes)


def matmul(n, x, width=16, out=8):
    return n.op("MatMul", x, n.w((width, out), 1))


def two(n, scale=0.0625):
    return n.qdq(n.input(1, 8, 8, 8)), n.qdq(n.input(1, 8, 8, 8), scale)


def int4(n, shape):
    n.opset = 21
    values = n.rng.integers(-8, 8, int(np.prod(shape))).tolist()
    n.initializers.append(helper.make_tensor("w4", TensorProto.INT4, shape, values))
    return "w4"
