#!/usr/bin/env python3
"""Writes what the benchmarks run: make_models.py DIR [resnet50] [nodes100k] [chain1m] [external] [inline] [x]

external has 4 GiB of weights beside it and inline 1.9 GiB inside, as holes that take no disk; x is an input of
resnet50."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Graph:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, name, shape, scale):
        value = (self.random.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op, inputs, name, outputs=None, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs or [name], name="/" + name, **attributes))
        return name

    def conv(self, x, name, channels_in, channels, kernel, stride, relu=True):
        w = self.weight(name + ".weight", (channels, channels_in, kernel, kernel),
                        (2.0 / (channels_in * kernel * kernel)) ** 0.5)
        b = self.weight(name + ".bias", (channels,), 0.01)
        pad = kernel // 2
        y = self.node("Conv", [x, w, b], name, kernel_shape=[kernel, kernel], strides=[stride, stride],
                      pads=[pad, pad, pad, pad])
        return self.node("Relu", [y], name + ".relu") if relu else y


def model(g, inputs, outputs, opset=17):
    graph = helper.make_graph(g.nodes, "bench", inputs, outputs, g.weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 8
    return m


def resnet50():
    g = Graph(50)
    x = g.conv("x", "conv1", 3, 64, 7, 2)
    x = g.node("MaxPool", [x], "maxpool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            stride = 2 if block == 0 and stage > 0 else 1
            y = g.conv(x, name + ".conv1", channels, width, 1, 1)
            y = g.conv(y, name + ".conv2", width, width, 3, stride)
            y = g.conv(y, name + ".conv3", width, width * 4, 1, 1, relu=False)
            if block == 0:
                x = g.conv(x, name + ".down", channels, width * 4, 1, stride, relu=False)
            x = g.node("Relu", [g.node("Add", [y, x], name + ".add")], name + ".out")
            channels = width * 4
    x = g.node("GlobalAveragePool", [x], "avgpool")
    x = g.node("Flatten", [x], "flatten")
    w, b = g.weight("fc.weight", (1000, 2048), 0.02), g.weight("fc.bias", (1000,), 0.01)
    g.node("Gemm", [x, w, b], "logits", transB=1)
    return model(g, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 224, 224])],
                 [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])])


def nodes100k():
    g = Graph(7)
    ops = ["Relu", "Sigmoid", "Tanh", "Neg", "Abs"]
    values = ["x"]
    for i in range(100000):
        if i % 10 == 9:
            values.append(g.node("Add", [values[-1], values[-5]], f"v{i}"))
        elif i % 100 == 50:
            w = g.weight(f"w{i}", (16,), 1.0)
            values.append(g.node("Mul", [values[-1], w], f"v{i}"))
        else:
            values.append(g.node(ops[i % len(ops)], [values[-1]], f"v{i}"))
    last = values[-1]
    return model(g, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
                 [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", 16])])


def chain1m():
    g = Graph(1)
    for i in range(1000000):
        g.node(("Tanh", "Sigmoid")[i % 2], [f"v{i - 1}" if i else "x"], f"v{i}")
    return model(g, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                 [helper.make_tensor_value_info("v999999", TensorProto.FLOAT, [4])])


def large(n, weights):
    """A model that adds its weights, of n elements each; they are the caller's to write."""
    names = [f"w{i}" for i in range(weights)]
    g = helper.make_graph([helper.make_node("Sum", ["x", *names], ["y"])], "large",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [n])])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)])
    m.ir_version = 8
    return m


def external(folder):
    """Eight weights of 512 MiB in one file beside the model."""
    size = 512 << 20
    m = large(size // 4, 8)
    for i in range(8):
        t = m.graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size // 4],
                                    data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "external.bin"), ("offset", i * size), ("length", size)):
            t.external_data.add(key=key, value=str(value))
    with open(f"{folder}/external.onnx", "wb") as f:
        f.write(m.SerializeToString())
    with open(f"{folder}/external.bin", "wb") as f:
        f.truncate(8 * size)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, n):
    """The head of a field of n bytes."""
    return varint(number << 3 | 2) + varint(n)


def inline(folder):
    """Two weights of 960 MiB inside: the fields are written by hand, their bytes skipped."""
    size, heads = 960 << 20, []
    m = large(size // 4, 2)
    graph = m.graph.SerializeToString()
    m.ClearField("graph")
    for i in range(2):
        t = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size // 4]).SerializeToString()
        t += field(TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number, size)
        heads.append(field(5, len(t) + size) + t)
    with open(f"{folder}/inline.onnx", "wb") as f:
        f.write(m.SerializeToString() + field(7, len(graph) + sum(map(len, heads)) + 2 * size) + graph)
        for head in heads:
            f.write(head)
            f.seek(size, 1)
        f.truncate()


def x(folder):
    np.save(f"{folder}/x.npy", np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32))


if __name__ == "__main__":
    makers = {"resnet50": resnet50, "nodes100k": nodes100k, "chain1m": chain1m}
    writers = {"external": external, "inline": inline, "x": x}
    for name in sys.argv[2:] or [*makers, *writers]:
        if name in writers:
            writers[name](sys.argv[1])
        else:
            save(makers[name](), f"{sys.argv[1]}/{name}.onnx")
        print(f"{sys.argv[1]}: {name}")
