"""Models with Gradient of ai.onnx.preview.training, and what it must give, by hand: tests/data/gradient/, laid out as
ONNX's own conformance tests.  Run in this folder with numpy and onnx."""
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TRAINING = "ai.onnx.preview.training"


def gradient(feed, gives, xs, y, zs=None):
    names = {"xs": xs, "y": y} | ({"zs": zs} if zs else {})
    return helper.make_node("Gradient", feed, gives, domain=TRAINING, **names)


def value(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def write(name, nodes, inputs, outputs, constants=(), dims=None):
    graph = helper.make_graph(
        nodes,
        name,
        [value(n, dims if dims is not None else list(v.shape)) for n, v in inputs],
        [value(n, dims if dims is not None else list(v.shape)) for n, v in outputs],
        [numpy_helper.from_array(v, n) for n, v in constants],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    data = os.path.join("gradient", "test_" + name, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    with open(os.path.join("gradient", "test_" + name, "model.onnx"), "wb") as f:
        f.write(model.SerializeToString())
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, (n, v) in enumerate(values):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as f:
                f.write(numpy_helper.from_array(v, n).SerializeToString())


a = np.array([0.5, -1.25, 2.0], np.float32)
b = np.array([1.5, 0.75, -0.5], np.float32)
p = np.array([0.25, 0.5, -1.0], np.float32)
q = np.array([2.0, -1.5, 0.125], np.float32)
node = helper.make_node

# d = sin(a b) a, as a function of a and c = a b: the way through c is cut
c = a * b
write(
    "gradient_of_intermediate",
    [node("Mul", ["a", "b"], ["c"]), node("Sin", ["c"], ["s"]), node("Mul", ["s", "a"], ["d"]),
     gradient(["c", "a"], ["dc", "da"], ["c", "a"], "d")],
    [("a", a), ("b", b)],
    [("dc", np.cos(c) * a), ("da", np.sin(c))],
)

# the same function of a and b at another place
write(
    "gradient_at_another_place",
    [node("Mul", ["a", "b"], ["c"]), node("Sin", ["c"], ["s"]), node("Mul", ["s", "a"], ["d"]),
     gradient(["p", "q"], ["dp"], ["a"], "d", ["b"])],
    [("a", a), ("b", b), ("p", p), ("q", q)],
    [("d", np.sin(a * b) * a), ("dp", np.cos(p * q) * q * p + np.sin(p * q))],
)

# twice: d = a^3 b, so d' = 3 a^2 b and d'' = 6 a b
write(
    "gradient_of_gradient",
    [node("Mul", ["a", "a"], ["r"]), node("Mul", ["r", "a"], ["t"]), node("Mul", ["t", "b"], ["d"]),
     gradient(["a"], ["e"], ["a"], "d"), gradient(["a"], ["f"], ["a"], "e")],
    [("a", a), ("b", b)],
    [("e", 3 * a * a * b), ("f", 6 * a * b)],
)

# a shape that only the run tells, broadcasting and a value that y does not depend on
write(
    "gradient_of_unknown_shape",
    [node("ReduceSum", ["a", "axes"], ["s"], keepdims=1), node("Mul", ["a", "s"], ["d"]),
     gradient(["a", "b"], ["da", "db"], ["a", "b"], "d")],
    [("a", a), ("b", b)],
    [("da", 2 * a.sum() * np.ones_like(a)), ("db", np.zeros_like(b))],
    [("axes", np.array([0], np.int64))],
    dims=["N"],
)
