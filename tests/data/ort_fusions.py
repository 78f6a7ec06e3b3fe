"""What ONNX Runtime makes of quantized models: the oracle of which Q and DQ it fuses into which operators.

    ort_fusions.py MODEL.onnx ..                operator counts of its optimized graph, as JSON
    ort_fusions.py --cases [NAME ..]            the same of the cases in the folder ort, a line each
    ort_fusions.py --check FILE                 whether the cases still give the lines of that file (ort_fusions.txt)
    ort_fusions.py --write FOLDER [NAME ..]     the cases as ONNX files
    ort_fusions.py --pack FILE                  the cases of ort_fusions.txt as one file (ort_fusions.models.gz): NAME, a
                                                space, bytes, a newline, the model; weights of more than 64 elements are 0
    ort_fusions.py --list NAME ..               the nodes of the optimized graph, one a line

Options before these: --level basic|extended|all (default: all, what a session has when nobody says otherwise),
--int8 (session.qdqisint8allowed=1).

A case is a function in the folder ort; each has only what one rule is about.  Scales are powers of two where nothing
else is wanted, weights are drawn from a fixed seed.
"""
import collections
import gzip
import json
import math
import os
import platform
import sys
import tempfile

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

sys.dont_write_bytecode = True
from ort.exports import STATIC, by_quantize_static  # noqa: E402
from ort.net import CASES, Net  # noqa: E402
from ort import convolutions, products, pointwise, moves, pairs, newer, networks, floats  # noqa: E402, F401

LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
VERSION = "onnxruntime " + ".".join(onnxruntime.__version__.split(".")[:2])


# ---- the oracle ----


def optimized(model, level="all", int8=False):
    """The graph that a session on the CPU would run; model: a path or the bytes of one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = LEVELS[level]
    if int8:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath).graph


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def title(node):
    return node.op_type if node.domain in ("", "ai.onnx") else node.domain + "." + node.op_type


def counts(graph):
    found = collections.Counter(title(n) for g in graphs(graph) for n in g.node)
    return dict(sorted(found.items()))


# ---- the command ----


def made(name):
    """The model of a case."""
    if name in STATIC:
        return by_quantize_static(*name.rsplit("-", 2))
    build, act, per = CASES[name]
    net = Net(act, "s8", per)
    build(net)
    return net.model()


def line_of(name, level, int8=False):
    try:
        found = counts(optimized(made(name).SerializeToString(), level, int8))
    except (state.Fail, state.InvalidGraph, state.NotImplemented):
        return name + " refused"  # what it made of the model is wrong by its own rules, or nobody computes it
    return " ".join([name] + ["%s=%d" % item for item in found.items()])


def check(path, level):
    """0 where every line of a file is what this ORT does; 77 where the file is of another one."""
    wrong, lines = 0, open(path).read().splitlines(True)
    if VERSION not in lines[0] or platform.machine() != "x86_64":
        print("skipped: %s is not of %s on %s" % (os.path.basename(path), VERSION, platform.machine()))
        return 77
    for line in lines[1:]:
        now = line_of(line.split()[0], level)
        if now != line.strip():
            print("was %snow %s" % (line, now))
            wrong = 1
    return wrong


def hollow(model):
    """A model without large weights: which operators there are does not depend on them."""
    for i in model.graph.initializer:
        scales = i.name.endswith(("_scale", "_zero_point"))
        if i.raw_data and math.prod(i.dims) > 64 and i.data_type in (1, 2, 3, 6) and not scales:
            i.raw_data = bytes(len(i.raw_data))
    return model


def pack(path):
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_fusions.txt")
    names = [line.split()[0] for line in open(beside) if line[0] != "#"]
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as packed:
        for name in names:
            model = hollow(made(name)).SerializeToString()
            packed.write(b"%s %d\n" % (name.encode(), len(model)) + model)


def main(arguments):
    level, int8, mode, names = "all", False, "models", []
    while arguments:
        a = arguments.pop(0)
        if a == "--level":
            level = arguments.pop(0)
        elif a == "--int8":
            int8 = True
        elif a in ("--cases", "--list"):
            mode = a[2:]
        elif a in ("--write", "--check", "--pack"):
            mode, folder = a[2:], arguments.pop(0)
        else:
            names.append(a)
    if mode == "check":
        return check(folder, level)
    if mode == "pack":
        return pack(folder)
    if mode == "models":
        for name in names:
            print(json.dumps(counts(optimized(name, level, int8))))
        return
    for name in [c for c in list(CASES) + STATIC if not names or any(c == x or c.startswith(x + "-") for x in names)]:
        if mode == "write":
            onnx.save(made(name), os.path.join(folder, name + ".onnx"))
        elif mode == "list":
            print(name)
            for node in optimized(made(name).SerializeToString(), level, int8).node:
                print("   ", title(node), ", ".join(node.input), "->", ", ".join(node.output))
        else:
            print(line_of(name, level, int8), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
