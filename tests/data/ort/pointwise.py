"""What joins values element by element, what takes one operand, pools and reductions."""
import numpy as np

from ort.net import case, conv, image, rows, two


@case()
def add_two(n):
    n.out(n.qdq(n.op("Add", *two(n, 0.125))))


@case()
def add_float_out(n):
    n.out(n.op("Add", *two(n)))


@case()
def add_one_float(n):
    n.out(n.qdq(n.op("Add", n.qdq(n.input(1, 8, 8, 8)), n.input(1, 8, 8, 8))))


@case()
def add_float_constant(n):
    n.out(n.qdq(n.op("Add", image(n), n.fw(8, 1, 1))))


@case()
def add_itself(n):
    x = image(n)
    n.out(n.qdq(n.op("Add", x, x)))


@case()
def add_relu(n):
    n.out(n.qrelu(n.op("Relu", n.op("Add", *two(n)))))


@case()
def add_relu_loose(n):
    n.out(n.qdq(n.op("Relu", n.op("Add", *two(n)))))


@case()
def add_types_differ(n):
    other = "s8" if n.act == "u8" else "u8"
    a, b = n.qdq(n.input(1, 8)), n.qdq(n.input(1, 8), act=other)
    n.out(n.qdq(n.op("Add", a, b)))


@case()
def mul_two(n):
    n.out(n.qdq(n.op("Mul", *two(n, 0.125))))


@case()
def mul_float_constant(n):
    n.out(n.qdq(n.op("Mul", image(n), n.fw(8, 1, 1))))


@case()
def sub_two(n):
    n.out(n.qdq(n.op("Sub", *two(n))))


@case()
def div_two(n):
    n.out(n.qdq(n.op("Div", *two(n))))


@case()
def where_two(n):
    a, b = two(n)
    n.out(n.qdq(n.op("Where", n.op("Greater", n.input(1, 8, 8, 8), n.const(0.0)), a, b)))


@case()
def where_constant(n):
    n.out(n.qdq(n.op("Where", n.op("Greater", n.input(1, 8, 8, 8), n.const(0.0)), image(n), n.const(0.0))))


@case()
def average_pool(n):
    n.out(n.qdq(n.op("AveragePool", image(n), kernel_shape=[2, 2], strides=[2, 2]), 0.03125))


@case()
def average_pool_float_out(n):
    n.out(n.op("AveragePool", image(n), kernel_shape=[2, 2], strides=[2, 2]))


@case()
def global_average_pool(n):
    n.out(n.qdq(n.op("GlobalAveragePool", image(n)), 0.03125))


@case()
def global_average_pool_same_scale(n):
    n.out(n.qdq(n.op("GlobalAveragePool", image(n))))


@case()
def global_average_pool_then_flatten(n):
    y = n.op("GlobalAveragePool", image(n))
    n.out(n.qdq(n.op("Flatten", y), 0.03125))


@case()
def reduce_mean(n):
    n.out(n.qdq(n.op("ReduceMean", image(n), axes=[2, 3], keepdims=1), 0.03125))


@case()
def max_pool(n):
    n.out(n.qdq(n.op("MaxPool", image(n), kernel_shape=[2, 2], strides=[2, 2])))


@case()
def max_pool_other_scale(n):
    n.out(n.qdq(n.op("MaxPool", image(n), kernel_shape=[2, 2], strides=[2, 2]), 0.125))


@case()
def max_pool_float_out(n):
    n.out(n.op("MaxPool", image(n), kernel_shape=[2, 2], strides=[2, 2]))


@case()
def max_pool_read_as_float(n):
    n.out(n.op("Exp", n.op("MaxPool", image(n), kernel_shape=[2, 2], strides=[2, 2])))


@case()
def max_pool_between_convs(n):
    """No pair in front of the pool: its Q moves before it, behind the convolution."""
    y = n.op("MaxPool", n.op("Relu", conv(n, image(n))), kernel_shape=[2, 2], strides=[2, 2])
    n.out(n.qdq(conv(n, n.qrelu(y))))


@case()
def max_pool_before_conv(n):
    """No pair behind the pool: its DQ moves behind it."""
    y = n.op("MaxPool", n.qrelu(n.op("Relu", conv(n, image(n)))), kernel_shape=[2, 2], strides=[2, 2])
    n.out(n.qdq(conv(n, y)))


@case()
def global_max_pool(n):
    n.out(n.qdq(n.op("GlobalMaxPool", image(n))))


@case()
def reduce_max(n):
    n.out(n.qdq(n.op("ReduceMax", image(n), axes=[2, 3], keepdims=1)))


@case()
def arg_max(n):
    n.out(n.op("ArgMax", rows(n), axis=1))


def unary(word, domain="", opset=17, **attributes):
    def both(n):
        n.opset = opset
        n.out(n.qdq(n.op(word, image(n), domain=domain, **attributes), 0.0078125))

    both.__name__ = word.lower() + "_qdq"
    case()(both)


unary("Sigmoid")
unary("LeakyRelu", alpha=0.1)
unary("Softmax", axis=-1)
unary("Tanh")
unary("HardSigmoid")
unary("HardSwish")
unary("Elu")
unary("Exp")
unary("Sqrt")
unary("Erf")
unary("Gelu", opset=20)
unary("Relu")
unary("Clip")
unary("Neg")
unary("Round")
unary("LogSoftmax", axis=-1)
unary("SpaceToDepth", blocksize=2)
unary("ReduceMin", axes=[2, 3])
unary("Dropout")


@case()
def softmax_other_axis(n):
    n.out(n.qdq(n.op("Softmax", image(n), axis=1), 0.0078125))


@case()
def relu_with_room(n):
    """Relu between pairs, behind which nothing is below zero."""
    n.out(n.qrelu(n.op("Relu", image(n))))


@case()
def relu_q_only(n):
    n.out(n.qrelu(n.op("Relu", n.op("Exp", n.input(1, 8)))))


@case()
def clip_with_room(n):
    n.out(n.qrelu(n.op("Clip", image(n), n.const(0.0), n.const(6.0)), np.float32(6 / 255)))


@case()
def layer_norm(n):
    x = n.qdq(n.input(2, 4, 16))
    n.out(n.qdq(n.op("LayerNormalization", x, n.fw(16), n.fw(16))))


@case()
def gelu_spelled(n):
    x = n.qdq(n.input(2, 4, 16))
    e = n.op("Erf", n.op("Div", x, n.const(np.sqrt(2.0))))
    y = n.op("Mul", n.op("Mul", x, n.op("Add", e, n.const(1.0))), n.const(0.5))
    n.out(n.qdq(y))
