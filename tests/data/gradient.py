"""Models with Gradient of ai.onnx.preview.training, and what it must give, by hand or by PyTorch: tests/data/gradient/,
laid out as ONNX's own conformance tests.  Run in this folder with the Python that has torch 1.13 and onnx."""
import io
import os

import numpy as np
import onnx
import torch
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
    store(name, helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs, outputs)


def store(name, model, inputs, outputs):
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


def exported(name, net, x):
    """A model as PyTorch exports it, and the gradients of the sum of its squared result by all parameters."""
    names = [n for n, _ in net.named_parameters()]
    y = net(x)
    (y * y).sum().backward()
    f = io.BytesIO()
    torch.onnx.export(net, x, f, opset_version=13, input_names=["x"], output_names=["y"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, keep_initializers_as_inputs=False)
    model = onnx.load_from_string(f.getvalue())
    g = model.graph
    g.node.append(helper.make_node("Mul", ["y", "y"], ["squares"]))
    g.node.append(helper.make_node("ReduceSum", ["squares"], ["loss"], keepdims=0))
    g.node.append(gradient(names, ["d." + n for n in names], names, "loss"))
    model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    grads = [("d." + n, p.grad.numpy()) for n, p in net.named_parameters()]
    for n, v in grads:
        g.output.append(value(n, list(v.shape)))
    store(name, model, [("x", x.numpy())], [("y", y.detach().numpy())] + grads)


class Turns(torch.nn.Module):
    """A loop with an if inside."""

    def __init__(self):
        super().__init__()
        self.cell, self.rec, self.out = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        h = torch.zeros(x.size(1), 4)
        y = torch.zeros(x.size(1), 2)
        for i in range(x.size(0)):
            h = torch.tanh(self.cell(x[i]) + self.rec(h))
            if i % 2 == 0:
                y = y + self.out(h)
            else:
                y = y * 0.5 + h[:, :2]
        return y


class Recurrent(torch.nn.Module):
    """An embedding and a recurrent net over it."""

    def __init__(self, kind, **how):
        super().__init__()
        self.table = torch.nn.Embedding(7, 3)
        self.net = kind(3, 4, **how)

    def forward(self, x):
        return self.net(self.table(x))[0]


torch.manual_seed(5)
exported("gradient_through_loop", torch.jit.script(Turns()), torch.randn(5, 2, 3))
words = torch.tensor([[0, 3, 3], [6, 1, 3], [2, 2, 5], [3, 0, 3]])
exported("gradient_through_lstm", Recurrent(torch.nn.LSTM, num_layers=2, bidirectional=True), words)
exported("gradient_through_gru", Recurrent(torch.nn.GRU, bidirectional=True), words)
exported("gradient_through_rnn", Recurrent(torch.nn.RNN, nonlinearity="relu"), words)
