"""Models that quantize_static made are trained through their pairs: what is exported has the file's scales and zero points and
other codes, the step, the file and ONNX Runtime come to the same results, and what was not trained is the file again.

usage: arrived.py QCC SOURCE FOLDER
"""
import os
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from deployed import run  # noqa: E402
from quantize_static import EVERY, SHAPES, make  # noqa: E402

SAMPLES = 64


def held(path):
    return {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}


def by_pairs(path, x):
    """ONNX Runtime's results from the pairs as they stand: what it fuses of them saturates on processors without VNNI."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def check(qcc, name, data, grain):
    model = "%s-%s-%s.onnx" % (name, data, grain)
    rng = numpy.random.default_rng(5)
    x = rng.standard_normal((SAMPLES, *SHAPES[name])).astype(numpy.float32)
    numpy.save("x.npy", x)
    numpy.save("t.npy", rng.integers(0, 10, SAMPLES))
    run("rm", "-rf", "run", "out.onnx", "s.step.onnx", "same.onnx")
    run(qcc, model, "--batch", "16", "--loss", "cross_entropy:y", "--lr", "1e-2", "-o", "s.step.onnx")
    run(qcc, "export", "s.step.onnx", "-o", "same.onnx")
    if open("same.onnx", "rb").read() != open(model, "rb").read():
        sys.exit("%s: what was not trained is another file" % model)
    run(qcc, "train", "s.step.onnx", "--data", "x=x.npy", "--target", "t.npy", "--steps", "8", "--checkpoint", "run",
        "--progress", "none", "-o", "out.onnx")
    before, after = held(model), held("out.onnx")
    if before.keys() != after.keys() or any(before[k].dtype != after[k].dtype for k in before):
        sys.exit("%s: the initializers are others" % model)
    changed = {k for k in before if not numpy.array_equal(before[k], after[k])}
    weights = {k for k in before if k.endswith("_quantized")}
    if not changed or not changed <= weights:
        sys.exit("%s: changed are %s" % (model, sorted(changed)))
    run(qcc, "predict", "out.onnx", "--data", "x=x.npy", "--output", "file.npy")
    run(qcc, "predict", "s.step.onnx", "--data", "x=x.npy", "--checkpoint", "run", "--output", "step.npy")
    ours, step, theirs = numpy.load("file.npy"), numpy.load("step.npy"), by_pairs("out.onnx", x)
    if not (ours == step).all():
        sys.exit("%s: the exported file and the step differ" % model)
    unit = after["y_scale"].item()
    apart = numpy.abs(ours - theirs) / unit
    if (apart > 0.5).mean() > 0.01 or apart.max() > 1.5:
        sys.exit("%s: %g of the codes of ONNX Runtime are others, by up to %g" % (model, (apart > 0.5).mean(), apart.max()))
    print("%-24s %2d of %2d weights changed, %g of the codes of ONNX Runtime are others"
          % (model, len(changed), len(weights), (apart > 0.5).mean()))


def main():
    qcc, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
    os.chdir(folder)
    make(folder, EVERY)
    for case in EVERY:
        check(qcc, *case)


main()
