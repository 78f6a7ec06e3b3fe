"""Certificates of the models of tests/data/exports and of our examples, trained on codes for two steps: no code of the exported
file differs from the training graph's, with unsigned and signed activations, and ONNX Runtime comes to the operators that
the certificate predicts (but for Transposes, which it moves through floats, and the Gathers that turn sizes with them).
Of a CNN every code is compared with ONNX Runtime's, too, as it fuses by default and as it runs the file literally.

usage: certified.py QCC SOURCE FOLDER
"""
import glob
import json
import os
import subprocess
import sys
from collections import Counter

import numpy
import onnx
import onnxruntime

from deployed import EXACT, SAMPLES, as_onnx, feeds_of, run, sizes

LEVELS = onnxruntime.GraphOptimizationLevel
SPECS = ["w8a8", "w8a8,a=int8:sym"]
MOVED = {"Transpose", "Gather"}
BATCHES = 40
OPENED = " --quant-op op:LSTM=a=uint8:asym:ema"
# seven bits: without VNNI ONNX Runtime cuts off what two products of eight take together beyond 16
BATCHED = [("tests/data/joined_block.qir", "w7a8"), ("tests/data/exports/lstm-eval-16-dynamic.onnx", "w7a8"),
           ("tests/data/exports/lstm-eval-16-dynamic.onnx", "w7a8" + OPENED), ("tests/data/recurrent.qir", "w7a8")]


def session(path, level, saved=None, exact=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    if exact:
        options.add_session_config_entry(EXACT, "1")
    if saved:
        options.optimized_model_filepath = saved
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def title(node):
    return node.op_type if node.domain in ("", "ai.onnx") else node.domain + "." + node.op_type


def unmoved(counts):
    return {k: v for k, v in counts.items() if k not in MOVED}


def trained(qcc, source, model, spec):
    """Data and certificate of a model that was trained on codes and exported as q.onnx."""
    rng = numpy.random.default_rng(7)
    read = as_onnx(qcc, source, model)
    feeds, data = feeds_of(read, rng), []
    output = read.graph.output[0]
    target = rng.standard_normal([SAMPLES] + sizes(output)[1:]).astype(numpy.float32)
    for k, v in feeds.items():
        data.append("%s=x%d.npy" % (k, len(data)))
        numpy.save(data[-1].split("=")[1], v)
    numpy.save("target.npy", target)
    run("rm", "-rf", "run", "q.onnx", "s.step.onnx", "q.json")
    run(qcc, os.path.join(source, model), "--loss", "mse:" + output.name, "--optimizer", "adamw:lr=1e-3", "--quant", *spec.split(),
        "-o", "s.step.onnx")
    run(qcc, "train", "s.step.onnx", *[w for d in data for w in ("--data", d)], "--target", "target.npy", "--steps", "2",
        "--checkpoint", "run", "--progress", "none")
    run(qcc, "--export", "s.step.onnx", "--checkpoint", "run", "-o", "q.onnx", "--certificate", "q.json",
        *[w for d in data for w in ("--verify", d)])
    return feeds, data, json.load(open("q.json"))


def check(qcc, source, model, spec):
    feeds, data, certificate = trained(qcc, source, model, spec)
    codes, stored = certificate["codes"], certificate["stored"]
    if not certificate["passed"] or codes["differ"] or stored["differ"] or not codes["values"]:
        sys.exit("%s %s: %s" % (model, spec, codes))
    session("q.onnx", LEVELS.ORT_ENABLE_EXTENDED, "optimized.onnx")
    found = Counter(title(n) for n in onnx.load("optimized.onnx").graph.node)
    predicted = certificate["onnxruntime"]["operators"]
    if unmoved(predicted) != unmoved(found):
        sys.exit("%s %s: predicted %s, found %s" % (model, spec, predicted, dict(found)))
    print("%-48s %-16s %8d codes, %4d ties, %4d others taken literally" % (
        model, spec, codes["values"], codes["ties"], sum(n["literal"]["differ"] for n in certificate["nodes"] if "literal" in n)))


def compare_codes(qcc, source):
    """The codes of each node of a CNN, ours and ONNX Runtime's."""
    feeds, data, certificate = trained(qcc, source, "examples/models/cnn.qir", "w8a8")
    names = [n["name"] for n in certificate["nodes"] if n["kind"] == "codes"]
    model = onnx.load("q.onnx")
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    onnx.save(model, "codes.onnx")
    run(qcc, "run", "codes.onnx", *[w for d in data for w in ("--input", d)],
        *[w for i, name in enumerate(names) for w in ("--output", "%s=c%d.npy" % (name, i))])
    for level, most in ((LEVELS.ORT_ENABLE_ALL, 0), (LEVELS.ORT_DISABLE_ALL, 0.001)):
        for i, (name, theirs) in enumerate(zip(names, session("codes.onnx", level, exact=True).run(names, feeds))):
            ours = numpy.load("c%d.npy" % i)
            differ = (ours != theirs).mean()
            print("%-24s %-16s %9d codes, %.6f differ" % (level.name, name, ours.size, differ))
            if differ > most or ours.shape != theirs.shape:
                sys.exit("%s: codes of %s differ from ONNX Runtime's" % (level.name, name))


def compare_batches(qcc, source, model, spec):
    """The codes of each node over 40 batches of other data, ours and ONNX Runtime's: at least 99 % of each batch are equal."""
    _, _, certificate = trained(qcc, source, model, spec)
    names = [n["name"] for n in certificate["nodes"] if n["kind"] == "codes"]
    rng = numpy.random.default_rng(11)
    read = onnx.load("q.onnx")
    shape = [BATCHES * SAMPLES] + sizes(read.graph.input[0])[1:]
    x = rng.standard_normal(shape).astype(numpy.float32)
    numpy.save("batches.npy", x)
    for name in names:
        read.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    onnx.save(read, "codes.onnx")
    run(qcc, "run", "codes.onnx", "--input", "%s=batches.npy" % read.graph.input[0].name,
        *[w for i, name in enumerate(names) for w in ("--output", "%s=c%d.npy" % (name, i))])
    theirs = session("codes.onnx", LEVELS.ORT_ENABLE_ALL).run(names, {read.graph.input[0].name: x})
    codes, differ, first = numpy.zeros(BATCHES), numpy.zeros(BATCHES), None
    for i, (name, b) in enumerate(zip(names, theirs)):
        a = numpy.load("c%d.npy" % i)
        axis = b.shape.index(BATCHES * SAMPLES)
        apart = numpy.moveaxis(a != b, axis, 0).reshape(BATCHES, -1)
        codes, differ = codes + apart.shape[1], differ + apart.sum(1)
        first = first or (name if apart.any() else None)
    print("%-48s %-16s %9d codes of %d nodes in %d batches, %.6f differ, worst batch %.6f, first %s" % (
        model, spec, codes.sum(), len(names), BATCHES, differ.sum() / codes.sum(), (differ / codes).max(), first))
    if (differ > 0.01 * codes).any():
        sys.exit("%s %s: codes differ from ONNX Runtime's, first those of %s" % (model, spec, first))


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    models = sorted(glob.glob(source + "/tests/data/exports/*.onnx")) + [
        source + "/examples/models/%s.qir" % name for name in ("mlp", "cnn", "gpt")] + [
        source + "/tests/data/%s.qir" % name for name in ("joined_block", "recurrent")]
    os.chdir(folder)
    for model in models:
        for spec in SPECS:
            check(qcc, source, os.path.relpath(model, source), spec)
    check(qcc, source, "tests/data/exports/lstm-eval-16-dynamic.onnx", "w8a8" + OPENED)
    compare_codes(qcc, source)
    for model, spec in BATCHED:
        compare_batches(qcc, source, model, spec)


if __name__ == "__main__":
    main()
