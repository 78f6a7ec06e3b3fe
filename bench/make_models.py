#!/usr/bin/env python3
"""Writes the models that the benchmarks run: make_models.py DIR [resnet50] [nodes100k] [chain1m]"""
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


if __name__ == "__main__":
    makers = {"resnet50": resnet50, "nodes100k": nodes100k, "chain1m": chain1m}
    for name in sys.argv[2:] or makers:
        save(makers[name](), f"{sys.argv[1]}/{name}.onnx")
        print(f"{sys.argv[1]}/{name}.onnx")
