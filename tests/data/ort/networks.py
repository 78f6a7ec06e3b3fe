"""Small networks."""
import numpy as np

from ort.net import case, conv, gemm, image, rows, two


@case("per")
def net_mlp(n):
    x = rows(n)
    x = n.qrelu(n.op("Relu", gemm(n, x, out=16)))
    x = n.qrelu(n.op("Relu", gemm(n, x, out=16)))
    n.out(gemm(n, x))


@case("per")
def net_cnn(n):
    x = n.qdq(n.input(1, 3, 16, 16))
    x = n.qrelu(n.op("Relu", conv(n, x, shape=(8, 3, 3, 3))))
    x = n.qrelu(n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = n.qrelu(n.op("Relu", conv(n, x)))
    x = n.qrelu(n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), 0.03125)
    x = n.qrelu(n.op("GlobalAveragePool", x), 0.03125)
    x = n.qrelu(n.op("Flatten", x), 0.03125)
    n.out(n.op("Gemm", x, n.w((8, 8)), n.bias(8, 0.03125), transB=1))


@case("per")
def net_residual(n):
    """Two convolutions and their input, added: one Q for the input, two DQ."""
    q = n.q(n.op("Relu", conv(n, image(n))), 0.0625, 0 if n.act == "u8" else -128)
    zero = 0 if n.act == "u8" else -128
    a, skip = n.dq(q, 0.0625, zero), n.dq(q, 0.0625, zero)
    y = n.qrelu(n.op("Relu", conv(n, a)))
    y = n.qdq(conv(n, y))
    y = n.qrelu(n.op("Relu", n.op("Add", y, skip)))
    n.out(n.qdq(conv(n, y)))


@case("per")
def net_projection(n):
    """As in ResNet where the size changes: a convolution beside the others."""
    d = n.qrelu(n.op("Relu", conv(n, image(n))))
    y = n.qrelu(n.op("Relu", conv(n, d, strides=[2, 2])))
    y = n.qdq(conv(n, y))
    s = n.qdq(conv(n, d, shape=(8, 8, 1, 1), strides=[2, 2], pads=[0] * 4), 0.125)
    n.out(n.qrelu(n.op("Relu", n.op("Add", y, s))))


@case("per")
def net_mobile(n):
    six = np.float32(6 / 255)

    def relu6(x):
        return n.qrelu(n.op("Clip", x, n.const(0.0), n.const(6.0)), six)

    def product(x, scale, **k):
        w = n.w(k.pop("shape"))
        return n.op("Conv", x, w, n.bias(8, scale), **k)

    x = image(n)
    y = relu6(product(x, 0.0625, shape=(8, 8, 1, 1)))
    y = relu6(product(y, six, shape=(8, 1, 3, 3), group=8, pads=[1] * 4))
    y = n.qdq(product(y, six, shape=(8, 8, 1, 1)))
    n.out(n.qdq(n.op("Add", y, x), 0.125))


@case("per")
def net_concat(n):
    x = image(n)
    a = n.qrelu(n.op("Relu", conv(n, x)))
    b = n.qrelu(n.op("Relu", conv(n, x, shape=(8, 8, 1, 1), pads=[0] * 4)))
    n.out(n.qdq(conv(n, n.qrelu(n.op("Concat", a, b, axis=1)), shape=(8, 16, 3, 3))))


def attention(n, x, paired):
    """One head of self-attention, width 16; x is quantized."""
    def linear(x, out=16):
        y = n.op("Add", n.op("MatMul", x, n.w((16, out), 1)), n.fw(out))
        return n.qdq(y)
    q, k, v = linear(x), linear(x), linear(x)
    kt = n.op("Transpose", k, perm=[0, 2, 1])
    if paired:
        kt = n.qdq(kt)
    s = n.op("Mul", n.op("MatMul", q, kt), n.const(0.25))
    p = n.qdq(n.op("Softmax", s, axis=-1), np.float32(1 / 255), 0 if n.act == "u8" else -128)
    return linear(n.qdq(n.op("MatMul", p, v)))


def transformer(n, paired):
    x = n.input(2, 8, 16)
    h = n.qdq(n.op("LayerNormalization", x, n.fw(16), n.fw(16)))
    x = n.op("Add", x, attention(n, h, paired))
    h = n.qdq(n.op("LayerNormalization", x, n.fw(16), n.fw(16)))
    h = n.op("Add", n.op("MatMul", h, n.w((16, 32), 1)), n.fw(32))
    e = n.op("Erf", n.op("Div", h, n.const(np.sqrt(2.0))))
    g = n.qdq(n.op("Mul", n.op("Mul", h, n.op("Add", e, n.const(1.0))), n.const(0.5)))
    h = n.op("Add", n.op("MatMul", g, n.w((32, 16), 1)), n.fw(16))
    n.out(n.op("Add", x, h))


@case("per")
def net_transformer(n):
    transformer(n, False)


@case()
def net_transformer_paired(n):
    transformer(n, True)
