"""Networks of their published depth that are narrow and see small pictures, for tests that compare every code of a deployed
file with another program's: ResNet-18, MobileNetV2, a small ViT, an LSTM whose cells are written out.

    networks.py FOLDER [resnet18] [mobilenet_v2] [vit_tiny] [lstm_cells]

Norms are taken as folded: products have biases.  Weights are drawn, larger where little survives a Relu, so that codes of
all layers are in use.
"""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Network:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, name, shape, scale):
        value = (self.random.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def constant(self, name, value, dtype=np.int64):
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def node(self, op, inputs, name, outputs=None, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs or [name], name="/" + name, **attributes))
        return name

    def conv(self, x, name, before, channels, kernel, stride=1, group=1, then=None):
        fan = before // group * kernel * kernel
        w = self.weight(name + ".weight", (channels, before // group, kernel, kernel), (2.0 / fan) ** 0.5)
        b = self.weight(name + ".bias", (channels,), 0.1)
        y = self.node("Conv", [x, w, b], name, kernel_shape=[kernel, kernel], strides=[stride, stride],
                      pads=[kernel // 2] * 4, group=group)
        if then == "Relu6":
            return self.node("Clip", [y, "zero", "six"], name + ".relu6")
        return self.node(then, [y], name + "." + then.lower()) if then else y

    def linear(self, x, name, n, m):
        """The way exporters write it of three dimensions: MatMul and Add."""
        w, b = self.weight(name + ".weight", (n, m), n ** -0.5), self.weight(name + ".bias", (m,), 0.1)
        return self.node("Add", [self.node("MatMul", [x, w], name + ".product"), b], name)

    def classifier(self, x, n, classes):
        x = self.node("Flatten", [x], "flatten")
        w, b = self.weight("fc.weight", (classes, n), n ** -0.5), self.weight("fc.bias", (classes,), 0.1)
        return self.node("Gemm", [x, w, b], "logits", transB=1)

    def norm(self, x, name, n):
        scale, shift = self.weight(name + ".weight", (n,), 0.5), self.weight(name + ".bias", (n,), 0.1)
        return self.node("LayerNormalization", [x, scale, shift], name)

    def model(self, shape, classes, opset=17):
        graph = helper.make_graph(self.nodes, "network",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
                                  [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def resnet18(width=16, size=32):
    """He et al. 2015: a convolution, four stages of two blocks; of a picture of 32 the first convolution keeps the size."""
    g = Network(18)
    x, before = g.conv("x", "conv1", 3, width, 3, then="Relu"), width
    x = g.node("MaxPool", [x], "maxpool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage in range(4):
        channels = width << stage
        for block in range(2):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            y = g.conv(x, name + ".conv1", before, channels, 3, stride, then="Relu")
            y = g.conv(y, name + ".conv2", channels, channels, 3)
            if stride > 1:
                x = g.conv(x, name + ".down", before, channels, 1, stride)
            x, before = g.node("Relu", [g.node("Add", [y, x], name + ".add")], name + ".out"), channels
    g.classifier(g.node("GlobalAveragePool", [x], "avgpool"), before, 10)
    return g.model((3, size, size), 10)


def mobilenet_v2(share=0.25, size=32):
    """Sandler et al. 2018: 17 inverted residuals between two convolutions; (widening, channels, times, stride)."""
    g = Network(2)
    g.constant("zero", 0, np.float32)
    g.constant("six", 6, np.float32)
    x, before, at = g.conv("x", "stem", 3, int(32 * share), 3, then="Relu6"), int(32 * share), 0
    for widening, channels, times, stride in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                              (6, 160, 3, 2), (6, 320, 1, 1)):
        channels = max(8, int(channels * share))
        for i in range(times):
            name, wide, step = f"block{at}", before * widening, stride if i == 0 else 1
            y = g.conv(x, name + ".expand", before, wide, 1, then="Relu6") if widening > 1 else x
            y = g.conv(y, name + ".depth", wide, wide, 3, step, group=wide, then="Relu6")
            y = g.conv(y, name + ".project", wide, channels, 1)
            x = g.node("Add", [x, y], name + ".add") if step == 1 and channels == before else y
            before, at = channels, at + 1
    x = g.conv(x, "last", before, int(1280 * share), 1, then="Relu6")
    g.classifier(g.node("GlobalAveragePool", [x], "avgpool"), int(1280 * share), 10)
    return g.model((3, size, size), 10)


def vit_tiny(width=48, heads=3, layers=4, size=16):
    """Dosovitskiy et al. 2020: patches of 4 with positions, blocks with the norm in front, the mean of all tokens."""
    g, tokens, each = Network(3), (size // 4) ** 2, width // heads
    w, b = g.weight("patch.weight", (width, 3, 4, 4), 48 ** -0.5), g.weight("patch.bias", (width,), 0.1)
    x = g.node("Conv", ["x", w, b], "patch", kernel_shape=[4, 4], strides=[4, 4])
    x = g.node("Reshape", [x, g.constant("patch.shape", [0, width, tokens])], "patch.flat")
    x = g.node("Transpose", [x], "tokens", perm=[0, 2, 1])
    x = g.node("Add", [x, g.weight("positions", (1, tokens, width), 0.2)], "placed")
    shape, back = g.constant("heads.shape", [0, tokens, heads, each]), g.constant("tokens.shape", [0, tokens, width])
    g.constant("root", each ** -0.5, np.float32)
    for i in range(layers):
        name = f"block{i}"
        y, parts = g.norm(x, name + ".norm1", width), {}
        for k, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            parts[k] = g.node("Reshape", [g.linear(y, f"{name}.{k}", width, width), shape], f"{name}.{k}.heads")
            parts[k] = g.node("Transpose", [parts[k]], f"{name}.{k}.turned", perm=perm)
        s = g.node("MatMul", [parts["q"], parts["k"]], name + ".scores")
        s = g.node("Softmax", [g.node("Mul", [s, "root"], name + ".scaled")], name + ".softmax", axis=-1)
        s = g.node("Transpose", [g.node("MatMul", [s, parts["v"]], name + ".mixed")], name + ".joined", perm=[0, 2, 1, 3])
        s = g.linear(g.node("Reshape", [s, back], name + ".flat"), name + ".proj", width, width)
        x = g.node("Add", [x, s], name + ".add1")
        y = g.linear(g.norm(x, name + ".norm2", width), name + ".up", width, 4 * width)
        y = g.linear(gelu(g, y, name), name + ".down", 4 * width, width)
        x = g.node("Add", [x, y], name + ".add2")
    x = g.node("ReduceMean", [g.norm(x, "norm", width)], "mean", axes=[1], keepdims=0)
    g.classifier(x, width, 10)
    return g.model((3, size, size), 10)


def gelu(g, x, name):
    for word, value in (("root2", 2 ** 0.5), ("one", 1), ("half", 0.5)):
        if not any(w.name == word for w in g.weights):
            g.constant(word, value, np.float32)
    e = g.node("Erf", [g.node("Div", [x, "root2"], name + ".gelu.div")], name + ".gelu.erf")
    e = g.node("Mul", [x, g.node("Add", [e, "one"], name + ".gelu.add")], name + ".gelu.mul")
    return g.node("Mul", [e, "half"], name + ".gelu")


def lstm_cells(features=12, hidden=24, steps=8):
    """Hochreiter and Schmidhuber 1997, the cells one behind the other with shared weights: both products of each are codes."""
    g = Network(4)
    g.weight("w", (features, 4 * hidden), features ** -0.5)
    g.weight("r", (hidden, 4 * hidden), hidden ** -0.5)
    g.weight("bias", (4 * hidden,), 0.2)
    g.constant("sizes", [hidden] * 4)
    g.constant("axis", [1])
    parts = [f"x{t}" for t in range(steps)]
    g.constant("ones", [1] * steps)
    g.node("Split", ["x", "ones"], "steps", outputs=parts, axis=1)
    h = c = None
    for t, part in enumerate(parts):
        name = f"cell{t}"
        gates = g.node("MatMul", [g.node("Squeeze", [part, "axis"], name + ".x"), "w"], name + ".in")
        if h:
            gates = g.node("Add", [gates, g.node("MatMul", [h, "r"], name + ".back")], name + ".sum")
        gates = g.node("Add", [gates, "bias"], name + ".gates")
        four = [f"{name}.{k}" for k in "iofc"]
        g.node("Split", [gates, "sizes"], name + ".split", outputs=four, axis=1)
        i, o, f = (g.node("Sigmoid", [v], v + ".sigmoid") for v in four[:3])
        new = g.node("Mul", [i, g.node("Tanh", [four[3]], name + ".tanh")], name + ".new")
        c = g.node("Add", [g.node("Mul", [f, c], name + ".kept"), new], name + ".state") if c else new
        h = g.node("Mul", [o, g.node("Tanh", [c], name + ".state.tanh")], name + ".h")
    g.classifier(h, hidden, 10)
    return g.model((steps, features), 10)


NETWORKS = {"resnet18": resnet18, "mobilenet_v2": mobilenet_v2, "vit_tiny": vit_tiny, "lstm_cells": lstm_cells}

if __name__ == "__main__":
    for network in sys.argv[2:] or NETWORKS:
        save(NETWORKS[network](), f"{sys.argv[1]}/{network}.onnx")
