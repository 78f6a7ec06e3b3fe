#!/usr/bin/python3
"""Models that PyTorch 2.15 writes in forms of their own, and what PyTorch makes of those that are trained.

    forms.py FOLDER       writes NAME.onnx, and NAME.safetensors as ../torch/make.py does
"""
import os
import sys
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
from make import OPTIMIZERS, STEPS, loss_of, save  # noqa: E402

warnings.filterwarnings("ignore")


class Splits(nn.Module):
    """Every way of taking apart: uneven parts, parts of parts, single items."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(8, 10), nn.Linear(3, 4), nn.Linear(10, 10), nn.Linear(8, 5)

    def forward(self, x):
        h = self.a(x)
        one, four, three, two = h.split([1, 4, 3, 2], -1)
        chunks, items = self.c(h).chunk(4, 1), h.view(-1, 5, 2).unbind(1)
        first, second = chunks[0].chunk(2, 1)
        y = self.b(three) * four + first.sum(-1, keepdim=True) * one + second.sum(-1, keepdim=True) + chunks[-1].sum(-1, keepdim=True)
        for i, item in enumerate(items):
            y = y + item.sum(1, keepdim=True) * (i + 1) * two[:, :1]
        return self.d(torch.cat([y, items[2], two], 1))


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.EmbeddingBag(11, 6, mode="mean"), nn.Linear(6, 5)

    def forward(self, x):
        return self.head(torch.tanh(self.table(x)))


class Positions(nn.Module):
    """Positions that are looked up."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(20, 4), nn.Embedding(64, 4), nn.Linear(4, 20)

    def forward(self, x):
        return self.head(self.words(x) + self.places(torch.arange(x.shape[1])))


class Cut(nn.Module):
    """Positions that are cut out of a parameter."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(20, 4), nn.Parameter(torch.randn(1, 64, 4)), nn.Linear(4, 20)

    def forward(self, x):
        return self.head(self.words(x) + self.places[:, : x.shape[1]])


class Graph(nn.Module):
    """Nodes of a graph, and its edges as two lists of their own length."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 6), nn.Linear(6, 3)

    def forward(self, x, source, target):
        h = self.a(x)
        return self.b(torch.relu(torch.zeros_like(h).index_add(0, target, h[source])))


class Drops(nn.Module):
    """Dropout of channels and of whole samples: PyTorch writes the draw, the comparison and the quotient."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.channels = nn.Linear(4, 6), nn.Linear(6, 6), nn.Dropout2d(0.25)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        h = torch.relu(self.a(x))
        y = self.b(h)
        if self.training:
            y = y * y.new_empty(y.shape[0], 1).bernoulli_(0.8).div_(0.8)
        return self.head(self.channels((h + y)[:, :, None, None]).flatten(1))


CLASSES = torch.tensor([0, 3, 1, 4])
MODELS = {
    "splits": (Splits, lambda: (torch.randn(4, 8), CLASSES)),
    "bags": (Bags, lambda: (torch.randint(0, 11, (4, 3)), CLASSES)),
}


def strip(nodes):
    for n in nodes:
        n.ClearField("doc_string")
        keep = [p for p in n.metadata_props if "stack_trace" not in p.key]
        del n.metadata_props[:]
        n.metadata_props.extend(keep)
        for a in n.attribute:
            strip(a.g.node)


class Mixed(nn.Module):
    """Computes with parameters alone, and reads these parameters, too: the exporter folds what it computes."""

    def __init__(self):
        super().__init__()
        self.mix, self.decay, self.lift = nn.Parameter(torch.rand(32)), nn.Parameter(torch.randn(32)), nn.Linear(32, 32)
        self.ramp, self.steeper = nn.Parameter(torch.arange(32) / 32), nn.Parameter(torch.arange(32) / 16 + 1)

    def forward(self, x):
        y = x * self.mix + self.lift(x) * (1 - self.mix) + torch.exp(self.decay) * x + self.decay
        return y * self.ramp + x * (2 - self.ramp) + self.steeper


def plain(path):
    """Without what names files of the machine that wrote it."""
    m = onnx.load(path)
    strip(m.graph.node)
    for f in m.functions:
        strip(f.node)
    onnx.save(m, path)


def raw(model, x, path, **more):
    torch.onnx.export(model.train(), (x,), path, dynamo=True, optimize=False, input_names=["x"], output_names=["logits"],
                      external_data=False, verbose=False, **more)
    plain(path)


def legacy(model, x, path, **more):
    torch.onnx.export(model.train(), (x,), path, dynamo=False, input_names=["x"], output_names=["logits"], opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, **more)
    plain(path)


def answers(model, x, y):
    start = {k: v.clone() for k, v in model.state_dict().items()}
    model.zero_grad()
    out = {"x": x, "y": y}
    logits, loss = loss_of(model, x, y)
    loss.backward()
    out["logits"], out["loss"] = logits.detach(), loss.detach()
    for k, p in model.named_parameters():
        out["grad/" + k] = p.grad.clone()
    for kind, optimizer in OPTIMIZERS.items():
        model.load_state_dict(start)
        o = optimizer(model.parameters())
        for _ in range(STEPS):
            o.zero_grad()
            loss_of(model, x, y)[1].backward()
            o.step()
        for k, p in model.named_parameters():
            out[kind + "/" + k] = p.detach().clone()
    model.load_state_dict(start)
    return out


def main(folder):
    for name, (make_model, make_data) in MODELS.items():
        torch.manual_seed(7)
        model = make_model().train()
        x, y = make_data()
        save(f"{folder}/{name}.safetensors", answers(model, x, y))
        raw(model, x, f"{folder}/{name}.onnx")
        save(f"{folder}/{name}-legacy.safetensors", answers(model, x, y))
        legacy(model, x, f"{folder}/{name}-legacy.onnx")
    torch.manual_seed(7)
    x, seq = torch.randint(0, 20, (2, 8)), torch.export.Dim("seq", max=64)
    dynamic = {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC, 1: seq},)}
    axes = {"dynamic_axes": {"x": {0: "batch", 1: "seq"}}}
    raw(Positions(), x, f"{folder}/positions.onnx", **dynamic)
    legacy(Positions(), x, f"{folder}/positions-legacy.onnx", **axes)
    raw(Cut(), x, f"{folder}/cut.onnx", **dynamic)
    legacy(Cut(), x, f"{folder}/cut-legacy.onnx", **axes)
    torch.manual_seed(7)
    drops, x = Drops(), torch.randn(4, 4)
    save(f"{folder}/drops.safetensors", {"x": x, "logits": drops.eval()(x).detach(), "y": torch.tensor([0, 1, 2, 0])})
    raw(drops, x, f"{folder}/drops.onnx")
    torch.manual_seed(7)
    edges = torch.tensor([0, 1, 2, 3, 3, 0]), torch.tensor([1, 2, 3, 0, 1, 2])
    path = f"{folder}/graph.onnx"
    torch.onnx.export(Graph().train(), (torch.randn(4, 2), *edges), path, dynamo=True, optimize=False, verbose=False,
                      input_names=["x", "source", "to"], output_names=["logits"], external_data=False)
    plain(path)
    torch.manual_seed(7)
    path = f"{folder}/mixed-dyn.onnx"
    torch.onnx.export(Mixed(), (torch.randn(4, 32),), path, dynamo=True, verbose=False, input_names=["x"], output_names=["logits"],
                      external_data=False)
    plain(path)


if __name__ == "__main__":
    main(sys.argv[1])
