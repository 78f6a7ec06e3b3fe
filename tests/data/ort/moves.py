"""What only moves elements, between pairs and beside them."""
import numpy as np

from ort.net import case, conv, gemm, image, two


def moved(word, ins=lambda n: [], **attributes):
    def equal(n):
        n.out(n.qdq(n.op(word, image(n), *ins(n), **attributes)))

    def other(n):
        n.out(n.qdq(n.op(word, image(n), *ins(n), **attributes), 0.125))

    def read_as_float(n):
        n.out(n.op("Exp", n.op(word, image(n), *ins(n), **attributes)))

    def between_floats(n):
        n.out(n.qdq(n.op(word, n.op("Exp", n.input(1, 8, 8, 8)), *ins(n), **attributes)))

    def before(n):
        """No pair between the move and the reader behind it."""
        n.out(n.qdq(n.op("Sigmoid", n.op(word, image(n), *ins(n), **attributes)), 0.0078125))

    def behind(n):
        """No pair between the writer and the move behind it."""
        n.out(n.qdq(n.op(word, n.op("Sigmoid", image(n)), *ins(n), **attributes), 0.0078125))

    for build, suffix in ((equal, ""), (other, "_other_scale"), (read_as_float, "_dq_only"),
                          (between_floats, "_q_only"), (before, "_before_sigmoid"), (behind, "_behind_sigmoid")):
        build.__name__ = word.lower() + suffix
        case()(build)


moved("Reshape", lambda n: [n.const([1, 512], np.int64)])
moved("Flatten")
moved("Transpose", perm=[0, 2, 3, 1])
moved("Unsqueeze", lambda n: [n.const([0], np.int64)])
moved("Squeeze", lambda n: [n.const([0], np.int64)])
moved("Slice", lambda n: [n.const(v, np.int64) for v in ([0], [4], [1])])
moved("Gather", lambda n: [n.const([1, 3], np.int64)], axis=1)
moved("Expand", lambda n: [n.const([2, 8, 8, 8], np.int64)])
moved("Tile", lambda n: [n.const([2, 1, 1, 1], np.int64)])
moved("Pad", lambda n: [n.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64)])
moved("DepthToSpace", blocksize=2)
moved("Resize", lambda n: ["", n.const([1, 1, 2, 2])], mode="nearest")
moved("Identity")


@case()
def resize_linear(n):
    n.out(n.qdq(n.op("Resize", image(n), "", n.const([1, 1, 2, 2]), mode="linear")))


@case()
def split_two(n):
    a, b = n.op("Split", image(n), n=2, axis=1)
    n.out(n.qdq(a), n.qdq(b))


@case()
def split_two_other_scale(n):
    a, b = n.op("Split", image(n), n=2, axis=1)
    n.out(n.qdq(a), n.qdq(b, 0.125))


@case()
def concat_two(n):
    n.out(n.qdq(n.op("Concat", *two(n), axis=1)))


@case()
def concat_other_scales(n):
    n.out(n.qdq(n.op("Concat", *two(n, 0.125), axis=1), 0.125))


@case()
def concat_one_float(n):
    n.out(n.qdq(n.op("Concat", image(n), n.input(1, 8, 8, 8), axis=1)))


@case()
def concat_float_out(n):
    n.out(n.op("Concat", *two(n), axis=1))


@case()
def max_pool_before_sigmoid(n):
    n.out(n.qdq(n.op("Sigmoid", n.op("MaxPool", image(n), kernel_shape=[2, 2])), 0.0078125))


@case()
def max_pool_behind_sigmoid(n):
    n.out(n.qdq(n.op("MaxPool", n.op("Sigmoid", image(n)), kernel_shape=[2, 2]), 0.0078125))


@case()
def reshape_behind_sigmoid_read_twice(n):
    """What the Q would have to pass is read by somebody else too."""
    y = n.op("Sigmoid", image(n))
    n.out(n.qdq(n.op("Reshape", y, n.const([1, 512], np.int64)), 0.0078125), n.op("Exp", y))


@case()
def reshape_before_two(n):
    """A DQ passes a move that two read."""
    y = n.op("Reshape", image(n), n.const([1, 512], np.int64))
    n.out(n.qdq(n.op("Sigmoid", y), 0.0078125), n.qdq(n.op("LeakyRelu", y)))


@case()
def relu_behind_reshape(n):
    """conv, Reshape, Relu, Q: nothing fuses over a move."""
    y = n.op("Reshape", conv(n, image(n)), n.const([1, 512], np.int64))
    n.out(n.qrelu(n.op("Relu", y)))


@case()
def conv_relu_reshape(n):
    y = n.op("Reshape", n.op("Relu", conv(n, image(n))), n.const([1, 512], np.int64))
    n.out(n.qrelu(y))


@case()
def conv_relu_read_twice(n):
    """The Relu is read as float too."""
    y = n.op("Relu", conv(n, image(n)))
    n.out(n.qrelu(y), n.op("Exp", y))


@case()
def conv_reshape_read_twice(n):
    """One Q behind a convolution, one DQ, a move with two readers."""
    y = n.op("Reshape", n.qdq(conv(n, image(n))), n.const([1, 512], np.int64))
    n.out(n.qdq(gemm(n, y, width=512)), n.qdq(gemm(n, y, width=512)))


@case()
def moves_in_a_row(n):
    """Conv, Transpose, Reshape, Gemm with pairs only around the products."""
    y = n.qdq(conv(n, image(n)))
    y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 3, 1]), n.const([1, 512], np.int64))
    n.out(n.qdq(gemm(n, y, width=512)))


@case()
def moves_in_a_row_unpaired_before(n):
    y = n.op("Reshape", n.op("Transpose", conv(n, image(n)), perm=[0, 2, 3, 1]), n.const([1, 512], np.int64))
    n.out(n.qdq(gemm(n, n.qdq(y), width=512)))


@case()
def flatten_before_gemm(n):
    y = n.op("Flatten", n.qdq(conv(n, image(n))))
    n.out(n.qdq(gemm(n, y, width=512)))


@case()
def flatten_before_gemm_paired(n):
    y = n.qdq(n.op("Flatten", n.qdq(conv(n, image(n)))))
    n.out(n.qdq(gemm(n, y, width=512)))
