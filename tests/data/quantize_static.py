"""Makes the models of tests/data/quantize_static: a convolutional network with a sum, and a block of attention with norm and
residuals, both by onnxruntime.quantization.quantize_static.

usage: quantize_static.py FOLDER [all]      all: with codes of data of both kinds, a scale a tensor and a channel
"""
import logging
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

STORED = [("cnn", "u8", "channel"), ("block", "s8", "tensor")]
EVERY = [(m, a, g) for m in ("cnn", "block") for a in ("u8", "s8") for g in ("tensor", "channel")]
SHAPES = {"cnn": (1, 8, 8), "block": (4, 16)}


def numbers(rng, scale, *shape):
    return (rng.standard_normal(shape) * scale).astype(numpy.float32)


def model_of(name, nodes, weights):
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *SHAPES[name]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def cnn(rng):
    node = helper.make_node
    weights = {"w1": numbers(rng, .4, 8, 1, 3, 3), "w2": numbers(rng, .15, 8, 8, 3, 3), "w3": numbers(rng, .3, 10, 8),
               "b1": numbers(rng, .1, 8), "b2": numbers(rng, .1, 8), "b3": numbers(rng, .1, 10)}
    return model_of("cnn", [
        node("Conv", ["x", "w1", "b1"], ["c1"], name="/conv1/Conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("Relu", ["c1"], ["r1"], name="/Relu"),
        node("MaxPool", ["r1"], ["p1"], name="/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2", "b2"], ["c2"], name="/conv2/Conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("Add", ["c2", "p1"], ["a2"], name="/Add"),
        node("Relu", ["a2"], ["r2"], name="/Relu_1"),
        node("GlobalAveragePool", ["r2"], ["g"], name="/GlobalAveragePool"),
        node("Flatten", ["g"], ["f"], name="/Flatten"),
        node("Gemm", ["f", "w3", "b3"], ["y"], name="/fc/Gemm", transB=1)], weights)


def block(rng):
    node = helper.make_node
    sizes = {"wq": (16, 16), "wk": (16, 16), "wv": (16, 16), "wo": (16, 16), "f1": (16, 32), "f2": (32, 16), "head": (16, 10)}
    weights = {k: numbers(rng, .2, *v) for k, v in sizes.items()}
    weights.update({"lg": numpy.ones(16, numpy.float32), "lb": numpy.zeros(16, numpy.float32), "fb": numbers(rng, .1, 32)})
    return model_of("block", [
        node("MatMul", ["x", "wq"], ["q"], name="/q/MatMul"),
        node("MatMul", ["x", "wk"], ["k"], name="/k/MatMul"),
        node("MatMul", ["x", "wv"], ["v"], name="/v/MatMul"),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1], name="/Transpose"),
        node("MatMul", ["q", "kt"], ["s"], name="/MatMul"),
        node("Softmax", ["s"], ["p"], axis=-1, name="/Softmax"),
        node("MatMul", ["p", "v"], ["o"], name="/MatMul_1"),
        node("MatMul", ["o", "wo"], ["o2"], name="/o/MatMul"),
        node("Add", ["x", "o2"], ["h"], name="/Add"),
        node("LayerNormalization", ["h", "lg", "lb"], ["ln"], axis=-1, name="/LayerNormalization"),
        node("MatMul", ["ln", "f1"], ["m1"], name="/f1/MatMul"),
        node("Add", ["m1", "fb"], ["m1b"], name="/f1/Add"),
        node("Relu", ["m1b"], ["mr"], name="/Relu"),
        node("MatMul", ["mr", "f2"], ["m2"], name="/f2/MatMul"),
        node("Add", ["h", "m2"], ["h2"], name="/Add_1"),
        node("ReduceMean", ["h2"], ["rm"], axes=[1], keepdims=0, name="/ReduceMean"),
        node("MatMul", ["rm", "head"], ["y"], name="/head/MatMul")], weights)


class Batches(CalibrationDataReader):
    def __init__(self, shape):
        rng = numpy.random.default_rng(1)
        self.batches = iter([{"x": numbers(rng, 1, 16, *shape)} for _ in range(8)])

    def get_next(self):
        return next(self.batches, None)


def make(folder, which):
    logging.disable(logging.WARNING)
    for name, data, grain in which:
        plain = os.path.join(folder, name + ".plain.onnx")
        onnx.save({"cnn": cnn, "block": block}[name](numpy.random.default_rng(0)), plain)
        quantize_static(plain, os.path.join(folder, "%s-%s-%s.onnx" % (name, data, grain)), Batches(SHAPES[name]),
                        quant_format=QuantFormat.QDQ, weight_type=QuantType.QInt8, per_channel=grain == "channel",
                        activation_type=QuantType.QUInt8 if data == "u8" else QuantType.QInt8)
        os.remove(plain)


if __name__ == "__main__":
    make(sys.argv[1], EVERY if sys.argv[2:] == ["all"] else STORED)
