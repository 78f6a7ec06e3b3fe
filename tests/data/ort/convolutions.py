"""Convolutions with all that may stand around them."""
import numpy as np

from ort.net import case, conv, image, two


@case("per")
def conv_bias(n):
    n.out(n.qdq(conv(n, image(n))))


@case("per")
def conv_no_bias(n):
    n.out(n.qdq(conv(n, image(n), "none")))


@case("per")
def conv_float_bias(n):
    n.out(n.qdq(conv(n, image(n), "float")))


@case("per")
def conv_float_bias_float_out(n):
    n.out(conv(n, image(n), "float"))


@case("per")
def conv_bias_of_other_scale(n):
    n.out(n.qdq(conv(n, image(n), off=1.5)))


@case("per")
def conv_float_out(n):
    n.out(conv(n, image(n)))


@case()
def conv_codes_out(n):
    n.out(n.q(conv(n, image(n))))


@case()
def conv_read_twice_as_float(n):
    y = conv(n, image(n))
    n.out(n.qdq(y), n.op("Exp", y))


@case()
def conv_float_result_too(n):
    y = conv(n, image(n))
    n.out(n.qdq(y), y)


@case()
def conv_two_quantizers(n):
    y = conv(n, image(n))
    n.out(n.qdq(y), n.qdq(y, 0.125))


@case()
def conv_codes_read_twice(n):
    """One Q, two DQ, two readers: with s8 the pair is no longer one of one Q and one DQ."""
    q = n.q(conv(n, image(n)))
    a, b = n.dq(q), n.dq(q)
    n.out(n.qdq(conv(n, a)), n.qdq(conv(n, b)))


@case()
def conv_dq_read_twice(n):
    """One Q, one DQ, two readers."""
    d = n.qdq(conv(n, image(n)))
    n.out(n.qdq(conv(n, d)), n.qdq(conv(n, d)))


@case()
def conv_input_read_twice(n):
    d = image(n)
    n.out(n.qdq(conv(n, d)), n.qdq(conv(n, d)))


@case()
def conv_relu(n):
    n.out(n.qrelu(n.op("Relu", conv(n, image(n)))))


@case()
def conv_relu_loose(n):
    """The code of 0 is not the least one: the Relu does something."""
    n.out(n.qdq(n.op("Relu", conv(n, image(n)))))


@case()
def conv_relu_float_out(n):
    n.out(n.op("Relu", conv(n, image(n))))


@case()
def conv_relu6(n):
    """The largest code stands for 6, or less."""
    y = n.op("Clip", conv(n, image(n)), n.const(0.0), n.const(6.0))
    n.out(n.qrelu(y, np.float32(6 / 255)))


@case()
def conv_relu6_loose(n):
    y = n.op("Clip", conv(n, image(n)), n.const(0.0), n.const(6.0))
    n.out(n.qrelu(y, 0.0625))


@case()
def conv_relu_narrow(n):
    """Codes from one above the least: the Relu does something to what is below zero."""
    n.out(n.qdq(n.op("Relu", conv(n, image(n))), 0.0625, 1 if n.act == "u8" else -127))


@case()
def conv_relu6_wider(n):
    """The largest code stands for a little more than 6."""
    y = n.op("Clip", conv(n, image(n)), n.const(0.0), n.const(6.0))
    n.out(n.qrelu(y, np.float32(6.001 / 255)))


@case()
def conv_clip_one_sided(n):
    """A bound below only, and codes that reach further up."""
    n.out(n.qrelu(n.op("Clip", conv(n, image(n)), n.const(0.0)), 0.0625))


@case()
def conv_leaky(n):
    n.out(n.qdq(n.op("LeakyRelu", conv(n, image(n)), alpha=0.1)))


@case()
def conv_silu(n):
    """x * sigmoid(x), everything quantized."""
    y = n.q(conv(n, image(n)))
    g = n.qdq(n.op("Sigmoid", n.dq(y)))
    n.out(n.qdq(n.op("Mul", n.dq(y), g)))


@case()
def conv_norm(n):
    v = [n.const([1.0] * 8) for _ in range(4)]
    n.out(n.qdq(n.op("BatchNormalization", conv(n, image(n)), *v)))


@case()
def conv_weight_by_q(n):
    """The weight as floats, quantized in the graph."""
    n.scale = np.float32(0.0078125)
    w = n.qdq(n.fw(8, 8, 3, 3), 0.0078125, 0, "s8")
    n.out(n.qdq(n.op("Conv", image(n), w, n.bias(8), pads=[1, 1, 1, 1])))


@case()
def conv_float_weight(n):
    n.out(n.qdq(n.op("Conv", image(n), n.fw(8, 8, 3, 3), n.fw(8), pads=[1, 1, 1, 1])))


@case()
def conv_u8_weight(n):
    n.weight = "u8"
    n.out(n.qdq(conv(n, image(n))))


@case()
def conv_weight_zero(n):
    """A weight whose zero point is not 0."""
    n.scale = np.float32(0.0078125)
    w = n.op("DequantizeLinear", n.codes((8, 8, 3, 3), np.int8), n.const(0.0078125), n.const(3, np.int8))
    n.out(n.qdq(n.op("Conv", image(n), w, n.bias(8), pads=[1, 1, 1, 1])))


@case("per")
def conv_depthwise(n):
    n.out(n.qdq(conv(n, image(n), shape=(8, 1, 3, 3), group=8)))


@case()
def conv_one_dimension(n):
    x = n.qdq(n.input(1, 8, 8))
    n.out(n.qdq(conv(n, x, shape=(8, 8, 3), pads=[1, 1])))


@case()
def conv_three_dimensions(n):
    x = n.qdq(n.input(1, 4, 4, 4, 4))
    n.out(n.qdq(conv(n, x, shape=(4, 4, 3, 3, 3), pads=[1] * 6)))


@case()
def conv_one_channel(n):
    x = n.qdq(n.input(1, 1, 8, 8))
    n.out(n.qdq(conv(n, x, shape=(8, 1, 3, 3))))


@case()
def conv_transposed(n):
    n.scale = np.float32(0.0078125)
    w = n.w((8, 8, 2, 2))
    n.out(n.qdq(n.op("ConvTranspose", image(n), w, n.bias(8), strides=[2, 2])))


@case()
def conv_transposed_float_parameters(n):
    """Its weight and bias become codes, although it stays float."""
    n.out(n.qdq(n.op("ConvTranspose", image(n), n.fw(8, 8, 2, 2), n.fw(8), strides=[2, 2])))


@case()
def conv_types_differ(n):
    """u8 in and s8 out, or the other way about."""
    other = "s8" if n.act == "u8" else "u8"
    n.out(n.qdq(conv(n, image(n)), act=other))


@case("once")
def conv_s8_weight_s8_by_u8(n):
    """s8 between u8: only the pair of one Q and one DQ is made u8."""
    x = n.qdq(n.input(1, 8, 8, 8), act="s8")
    n.out(n.qdq(conv(n, x), act="u8"))


@case("once")
def conv_u16(n):
    n.act = "u16"
    n.opset = 21
    n.out(n.qdq(conv(n, image(n), "none")))
