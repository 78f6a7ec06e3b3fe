"""Pairs themselves, what is stored, and what several groups share."""
import numpy as np
from onnx import TensorProto, helper

from ort.net import TYPES, case, conv, gemm, image, int4, matmul, rows, two


@case()
def pair_alone(n):
    n.out(n.qdq(n.input(1, 8)))


@case()
def pair_between_floats(n):
    n.out(n.op("Exp", n.qdq(n.op("Exp", n.input(1, 8)))))


@case()
def pair_twice(n):
    """Two equal pairs in a row."""
    n.out(n.op("Exp", n.qdq(n.qdq(n.op("Exp", n.input(1, 8))))))


@case()
def pair_twice_other_scale(n):
    n.out(n.op("Exp", n.qdq(n.qdq(n.op("Exp", n.input(1, 8))), 0.125)))


@case()
def pair_twice_before_conv(n):
    n.out(n.qdq(conv(n, n.qdq(image(n)))))


@case()
def pair_twice_before_conv_other_scale(n):
    n.out(n.qdq(conv(n, n.qdq(n.qdq(n.input(1, 8, 8, 8), 0.125)))))


@case()
def codes_in_and_out(n):
    """A model whose inputs and outputs are codes."""
    n.inputs.append(helper.make_tensor_value_info("x0", helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[n.act])),
                                                  (1, 8, 8, 8)))
    n.out(n.q(conv(n, n.dq("x0"))))


@case()
def weight_only_dq(n):
    """A lone DQ of a stored constant that a float operator reads."""
    n.out(n.op("Add", n.input(4, 8), n.w((4, 8))))


@case()
def weight_gathered(n):
    """An embedding: DQ of a table, then Gather."""
    n.inputs.append(helper.make_tensor_value_info("x0", TensorProto.INT64, (4,)))
    n.out(n.op("Gather", n.w((32, 8)), "x0"))


@case()
def table_gathered_then_dq(n):
    """An embedding: Gather of codes, then DQ."""
    n.inputs.append(helper.make_tensor_value_info("x0", TensorProto.INT64, (4,)))
    codes = n.codes((32, 8), np.int8)
    n.out(n.op("Exp", n.dq(n.op("Gather", codes, "x0"), 0.0078125, 0, "s8")))


@case()
def pair_read_and_a_result(n):
    """A pair whose floats are a result, and read."""
    d = n.qdq(conv(n, image(n)))
    n.out(d, n.qdq(conv(n, d)))


@case()
def codes_read_and_a_result(n):
    q = n.q(conv(n, image(n)))
    n.out(q, n.qdq(conv(n, n.dq(q))))


@case()
def pairs_side_by_side(n):
    """Two equal pairs of one value, each with constants of its own."""
    y = conv(n, image(n))
    n.out(n.qdq(conv(n, n.qdq(y))), n.qdq(conv(n, n.qdq(y))))


@case()
def pairs_side_by_side_shared(n):
    """The same of one scale and one zero point: they are one."""
    s, z = n.const(0.0625), n.zero_of(None, n.act)
    y = conv(n, image(n))

    def pair():
        return n.op("DequantizeLinear", n.op("QuantizeLinear", y, s, z), s, z)
    n.out(n.qdq(conv(n, pair())), n.qdq(conv(n, pair())))


@case()
def matmul_two_float_readers(n):
    y = matmul(n, rows(n))
    n.out(n.op("Exp", y), n.op("Abs", y))


@case()
def matmul_scaled(n):
    n.out(n.qdq(n.op("Mul", matmul(n, rows(n)), n.const(0.25))))


@case()
def gemm_two_float_readers(n):
    y = gemm(n, rows(n))
    n.out(y, n.op("Exp", y), n.op("Abs", y))


@case()
def gemm_float_reader_and_q(n):
    y = gemm(n, rows(n))
    n.out(n.op("Exp", y), n.qdq(y))


@case()
def lstm(n):
    n.out(n.op("LSTM", n.qdq(n.input(4, 2, 8)), n.w((1, 16, 8), 1), n.w((1, 16, 4), 1), n=3, hidden_size=4)[0])


@case()
def heads(n):
    """Q K' of two heads: Reshape and Transpose between the pairs and the product."""
    def head(perm):
        y = n.qdq(matmul(n, n.qdq(n.input(2, 4, 16)), 16, 16))
        return n.op("Transpose", n.op("Reshape", y, n.const([2, 4, 2, 8], np.int64)), perm=perm)
    s = n.op("MatMul", head([0, 2, 1, 3]), head([0, 2, 3, 1]))
    n.out(n.op("Softmax", n.op("Mul", s, n.const(0.5)), axis=-1))


@case()
def pool_flatten_gemm(n):
    y = n.op("Flatten", n.qdq(n.op("GlobalAveragePool", image(n))))
    n.out(n.op("Gemm", y, n.w((8, 8)), n.bias(8), transB=1))


@case()
def pool_reshape_gemm(n):
    y = n.op("Reshape", n.qdq(n.op("GlobalAveragePool", image(n))), n.const([1, 8], np.int64))
    n.out(n.op("Gemm", y, n.w((8, 8)), n.bias(8), transB=1))


@case()
def pool_unpaired_reshape_gemm(n):
    y = n.op("Reshape", n.op("GlobalAveragePool", image(n)), n.const([1, 8], np.int64))
    n.out(n.op("Gemm", n.qdq(y), n.w((8, 8)), n.bias(8), transB=1))


@case()
def pad_before_conv(n):
    """No pair between: the padding becomes the convolution's."""
    y = n.op("Pad", image(n), n.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    n.out(n.qdq(conv(n, y, pads=[0] * 4)))


@case()
def split_before_sigmoid(n):
    a, b = n.op("Split", image(n), n=2, axis=1)
    n.out(n.qdq(n.op("Sigmoid", a), 0.0078125), n.qdq(n.op("Sigmoid", b), 0.0078125))


@case()
def concat_behind_sigmoid(n):
    a, b = two(n)
    n.out(n.qdq(n.op("Concat", n.op("Sigmoid", a), n.op("Sigmoid", b), axis=1), 0.0078125))


@case()
def mul_codes_constant(n):
    """A constant that is stored as codes of the activations' type."""
    c = n.op("DequantizeLinear", n.codes((8, 1, 1), TYPES[n.act]), n.const(0.0078125), n.zero_of(None, n.act))
    n.out(n.qdq(n.op("Mul", image(n), c)))


@case()
def hard_swish_spelled(n):
    x = image(n)
    n.out(n.qdq(n.op("Mul", x, n.qdq(n.op("HardSigmoid", x), 0.0078125))))


@case()
def gemm_norm(n):
    v = [n.const([1.0] * 8) for _ in range(4)]
    n.out(n.qdq(n.op("BatchNormalization", gemm(n, rows(n)), *v)))


@case()
def conv_weight_only(n):
    n.out(conv(n, n.input(1, 8, 8, 8), "float"))


@case()
def gemm_weight_only(n):
    n.out(gemm(n, n.input(4, 32), "float", trans=0, width=32))


@case()
def gemm_weight_only_turned(n):
    n.out(gemm(n, n.input(4, 32), "float", width=32))


@case()
def conv_activation_per_channel(n):
    """An activation with a scale for each channel."""
    s, z = n.const([0.0625] * 8), n.const([128 if n.act == "u8" else 0] * 8, TYPES[n.act])
    x = n.op("QuantizeLinear", n.input(1, 8, 8, 8), s, z, axis=1)
    n.out(n.qdq(conv(n, n.op("DequantizeLinear", x, s, z, axis=1))))


@case()
def conv_int4(n):
    w = n.op("DequantizeLinear", int4(n, (8, 8, 3, 3)), n.const(0.125))
    n.out(n.qdq(n.op("Conv", image(n), w, pads=[1] * 4)))


@case()
def matmul_int4(n):
    n.out(n.qdq(n.op("MatMul", rows(n, 32), n.op("DequantizeLinear", int4(n, (32, 8)), n.const(0.125)))))


@case()
def matmul_int4_weight_only(n):
    w = n.op("DequantizeLinear", int4(n, (32, 8)), n.const(np.full((2, 8), 0.125)), axis=0, block_size=16)
    n.out(n.op("MatMul", n.input(4, 32), w))


@case()
def relu_between_equal_pairs(n):
    """Behind a Relu that does nothing the second pair says what the first did."""
    n.out(n.qrelu(n.op("Relu", n.qrelu(n.op("Exp", n.input(1, 8))))))
