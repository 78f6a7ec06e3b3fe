"""Codes that are floats: rules ask whether types are equal, not whether the operator has them."""
from onnx import TensorProto, helper

from ort.net import CASES

FLOATS = {"e4m3": TensorProto.FLOAT8E4M3FN, "e5m2": TensorProto.FLOAT8E5M2, "e2m1": TensorProto.FLOAT4E2M1}


class Codes:
    """Pairs of such codes in a net."""

    def __init__(self, net, act):
        net.opset = 23 if act == "e2m1" else 19
        self.net, self.type = net, FLOATS[act]

    def const(self, *dims):
        name, n = self.net.name("c"), 1
        for d in dims:
            n *= d
        numbers = [(i % 7 - 3) / 2 for i in range(n)] if dims else [0.0]
        self.net.initializers.append(helper.make_tensor(name, self.type, dims, numbers))
        return name

    def q(self, x):
        return self.net.op("QuantizeLinear", x, self.net.const(0.0625), self.const())

    def dq(self, x, scale=0.0625):
        return self.net.op("DequantizeLinear", x, self.net.const(scale), self.const())

    def qdq(self, x):
        return self.dq(self.q(x))

    def w(self, *dims):
        return self.dq(self.const(*dims), 0.0078125)

    def image(self):
        return self.qdq(self.net.input(1, 8, 8, 8))

    def rows(self):
        return self.qdq(self.net.input(4, 16))


def float_case(build):
    for act in FLOATS if build.__name__.endswith("weight_only") else ("e4m3", "e5m2"):
        def with_codes(n, act=act):
            build(n, Codes(n, act))
        CASES["float_%s-%s" % (build.__name__, act)] = (with_codes, "u8", "tensor")
    return build


@float_case
def conv(n, f):
    n.out(f.qdq(n.op("Conv", f.image(), f.w(8, 8, 3, 3))))


@float_case
def conv_float_out(n, f):
    n.out(n.op("Conv", f.image(), f.w(8, 8, 3, 3)))


@float_case
def conv_float_bias(n, f):
    n.out(f.qdq(n.op("Conv", f.image(), f.w(8, 8, 3, 3), n.fw(8))))


@float_case
def conv_relu(n, f):
    n.out(f.qdq(n.op("Relu", n.op("Conv", f.image(), f.w(8, 8, 3, 3)))))


@float_case
def conv_relu_float_out(n, f):
    n.out(n.op("Relu", n.op("Conv", f.image(), f.w(8, 8, 3, 3))))


@float_case
def conv_weight_only(n, f):
    n.out(n.op("Conv", n.input(1, 8, 8, 8), f.w(8, 8, 3, 3)))


@float_case
def conv_of_u8(n, f):
    n.out(n.qdq(n.op("Conv", n.qdq(n.input(1, 8, 8, 8)), f.w(8, 8, 3, 3))))


@float_case
def matmul(n, f):
    n.out(f.qdq(n.op("MatMul", f.rows(), f.w(16, 8))))


@float_case
def matmul_float_out(n, f):
    n.out(n.op("MatMul", f.rows(), f.w(16, 8)))


@float_case
def matmul_weight_only(n, f):
    n.out(n.op("MatMul", n.input(4, 16), f.w(16, 8)))


@float_case
def matmul_of_u8(n, f):
    n.out(n.op("MatMul", n.qdq(n.input(4, 16)), f.w(16, 8)))


@float_case
def gemm(n, f):
    n.out(f.qdq(n.op("Gemm", f.rows(), f.w(8, 16), transB=1)))


@float_case
def gemm_float_out(n, f):
    n.out(n.op("Gemm", f.rows(), f.w(8, 16), transB=1))


@float_case
def gemm_float_bias(n, f):
    n.out(n.op("Gemm", f.rows(), f.w(8, 16), n.fw(8), transB=1))


@float_case
def gemm_weight_only(n, f):
    n.out(n.op("Gemm", n.input(4, 16), f.w(16, 8)))


@float_case
def add(n, f):
    n.out(f.qdq(n.op("Add", f.rows(), f.rows())))


@float_case
def add_float_out(n, f):
    n.out(n.op("Add", f.rows(), f.rows()))


@float_case
def sigmoid(n, f):
    n.out(f.qdq(n.op("Sigmoid", f.rows())))


@float_case
def tanh(n, f):
    n.out(f.qdq(n.op("Tanh", f.rows())))


@float_case
def average_pool(n, f):
    n.out(f.qdq(n.op("AveragePool", f.image(), kernel_shape=[2, 2])))


@float_case
def max_pool(n, f):
    n.out(f.qdq(n.op("MaxPool", f.image(), kernel_shape=[2, 2])))


@float_case
def max_pool_float_out(n, f):
    n.out(n.op("MaxPool", f.image(), kernel_shape=[2, 2]))


@float_case
def transpose(n, f):
    n.out(f.qdq(n.op("Transpose", f.rows(), perm=[1, 0])))


@float_case
def relu(n, f):
    n.out(f.qdq(n.op("Relu", f.rows())))


@float_case
def twice(n, f):
    n.out(f.qdq(f.qdq(n.input(4, 16))))


@float_case
def clip(n, f):
    n.out(f.qdq(n.op("Clip", f.rows(), n.const(0.0), n.const(0.5))))


@float_case
def clip_conv(n, f):
    n.out(f.qdq(n.op("Clip", n.op("Conv", f.image(), f.w(8, 8, 3, 3)), n.const(0.0), n.const(6.0))))


@float_case
def arg_max(n, f):
    n.out(n.op("ArgMax", f.rows(), axis=1))
