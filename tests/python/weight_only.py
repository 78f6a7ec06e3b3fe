"""Weights as codes of groups, and products of floats with them: models are trained so for some steps and exported; the file,
the step with its checkpoint and ONNX Runtime come to the same results, codes of four bits are packed, what is said of the file
is true, and the file that is read and trained again keeps its scales, and bits.  Models that were exported so without training:
as many DequantizeLinear stay in a session as are said to, none with the option that makes floats of them.

usage: weight_only.py QCC SOURCE FOLDER
"""
import os
import re
import sys
from collections import Counter

import numpy
import onnx
import onnxruntime
from onnx import TensorProto

sys.dont_write_bytecode = True
from deployed import SAMPLES, as_onnx, feeds_of, run, sizes  # noqa: E402

LEVEL = "session.qdq_matmulnbits_accuracy_level"
FOUR = {TensorProto.INT4, TensorProto.UINT4}

# model, --quant, target, weights of four bits in the file, products that ONNX Runtime rounds data of, operators it comes to
CASES = [
    ("examples/models/gpt.qir", "w4g32", "ort", 13, 13, {"MatMulNBits": 13}),
    ("examples/models/gpt.qir", "w=uint4:group=16:asym,a=off", "ort", 13, 13, {"MatMulNBits": 13}),
    ("examples/models/gpt.qir", "w4", "ort", 13, 13, {"MatMulNBits": 13}),
    ("examples/models/gpt.qir", "w=int4:tile=16x32:lsq,a=off", "ort", 13, 13, {"MatMulNBits": 13}),
    ("examples/models/gpt.qir", "w=int4:group=8,a=off", "ort", 13, 0, {"MatMulNBits": 0}),
    ("examples/models/gpt.qir", "w=int8:block=24,a=off", "ort", 0, 0, {"MatMulNBits": 0}),
    ("examples/models/gpt.qir", "w8g32", "ort", 0, 13, {"MatMulNBits": 13}),
    ("examples/models/gpt.qir", "w=int4:group=32,a=int8:row:dynamic,b=off", "ort", 13, 12, {"MatMulNBits": 12}),
    ("examples/models/gpt.qir", "w=int4:group=32,a=uint8:asym,b=off", "ort", 13, 0, {"MatMulNBits": 0}),
    ("examples/models/mlp.qir", "w8a8,a=int8:row:dynamic", "ort", 0, 0, {}),
    ("examples/models/cnn.qir", "w4", "ort", 3, 0, {"FusedConv": 2}),
    ("examples/models/cnn.qir", "w=int4:block=8:lsq,a=off", "ort", 3, 0, {"FusedConv": 2}),
    ("examples/models/cnn.qir", "w=int4:channel:lsq,a=uint8:asym,b=int32", "ort", 0, 0, {"QLinearConv": 2, "QGemm": 1}),
    ("examples/models/cnn.qir", "w=int4:channel:lsq,a=uint8:asym,b=int32", "generic", 3, 0, {"QLinearConv": 0}),
    ("examples/models/gpt.qir", "int8-weights", "ort", 0, 0, {"MatMulNBits": 0}),
    ("examples/models/gpt.qir", "w=int4:group=32:sr:stored,a=off", "ort", 13, 13, {"MatMulNBits": 13}),
    ("examples/models/mlp.qir", "w=uint4:group=16:asym:sr:stored,a=off", "generic", 2, 0, {}),
    ("examples/models/cnn.qir", "int8-weights", "ort", 0, 0, {"FusedConv": 0}),
    ("tests/data/exports/llama-eval-16-dynamic.onnx", "w4g4", "ort", None, None, {}),
]


# Without training: model, --quant, weights that ONNX Runtime is said to make floats of in every run
ALONE = [
    ("examples/models/gpt.qir", "w4g32", 0),
    ("examples/models/gpt.qir", "w8", 0),
    ("examples/models/gpt.qir", "w=int4:block=24,a=off", 13),
    ("examples/models/cnn.qir", "w8", 3),
    ("examples/models/cnn.qir", "w=int4:channel:hqo,a=off", 3),
    ("examples/models/mlp.qir", "w=uint4:group=16:asym:mse,a=off", 2),
]


def by_onnxruntime(feeds, output, level, floats=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = "optimized.onnx"
    if level is not None:
        options.add_session_config_entry(LEVEL, str(level))
    if floats:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession("q.onnx", options, providers=["CPUExecutionProvider"])
    shapes = {i.name: i.shape for i in session.get_inputs()}
    batch = next(iter(shapes.values()))[0]
    batch = batch if isinstance(batch, int) else SAMPLES
    parts = [session.run([output], {k: v[at:at + batch] for k, v in feeds.items()})[0] for at in range(0, SAMPLES, batch)]
    return numpy.concatenate(parts), Counter(n.op_type for n in onnx.load("optimized.onnx").graph.node)


def weights_of(path):
    """Initializers that are codes of weights, by name."""
    model = onnx.load(path)
    stored = {i.name: i for i in model.graph.initializer}
    return {n.input[0]: stored[n.input[0]] for n in model.graph.node
            if n.op_type == "DequantizeLinear" and n.input[0] in stored
            and stored[n.input[0]].data_type != TensorProto.INT32}, model


def train(qcc, model, data, spec, target, out):
    run("rm", "-rf", "run", out, "s.step.onnx")
    words = ["--quant", spec, "--for", target] if spec else []
    run(qcc, model, "--loss", "mse:" + data[1], "--optimizer", "adamw:lr=1e-3", *words, "-o", "s.step.onnx")
    return run(qcc, "train", "s.step.onnx", *data[0], "--target", "target.npy", "--steps", "4", "--checkpoint", "run",
               "--progress", "none", "-o", out)


def distance(a, b):
    return float(numpy.abs(a - b).max()) / float(numpy.abs(b).max())


def check_file(name, told, four, rounded):
    weights, model = weights_of("q.onnx")
    packed = [w for w in weights.values() if w.data_type in FOUR]
    for w in packed:
        if len(w.raw_data) != (int(numpy.prod(w.dims)) + 1) // 2:
            sys.exit("%s: %s is not two codes to a byte" % (name, w.name))
    if four is not None and len(packed) != four:
        sys.exit("%s: %d weights are packed, wanted are %d" % (name, len(packed), four))
    if packed and model.opset_import[0].version < 21:
        sys.exit("%s: opset %d has no int4" % (name, model.opset_import[0].version))
    said = re.search(r"the data of (\d+) products", told)
    if rounded is not None and (int(said.group(1)) if said else 0) != rounded:
        sys.exit("%s: said of %s products, wanted are %d\n%s" % (name, said and said.group(1), rounded, told))
    if not re.search(r"weights +[0-9.]+ (bytes|kB)", told):
        sys.exit("%s: the bytes of the weights are not said\n%s" % (name, told))
    return packed


def check(qcc, source, model, spec, target, four, rounded, operators):
    rng = numpy.random.default_rng(7)
    read = as_onnx(qcc, source, model)
    feeds = feeds_of(read, rng)
    output = read.graph.output[0]
    shape = [SAMPLES] + sizes(output)[1:]
    numpy.save("target.npy", rng.standard_normal(shape).astype(numpy.float32))
    words = []
    for k, v in feeds.items():
        numpy.save("x%d.npy" % len(words), v)
        words += ["--data", "%s=x%d.npy" % (k, len(words))]
    data, name = (words, output.name), "%s %s %s" % (model, spec, target)
    told = train(qcc, os.path.join(source, model), data, spec, target, "q.onnx")
    packed = check_file(name, told, four, rounded)
    run(qcc, "predict", "q.onnx", *words, "--output", "file.npy")
    run(qcc, "predict", "s.step.onnx", *words, "--checkpoint", "run", "--output", "step.npy")
    ours = numpy.load("file.npy")
    if not (ours == numpy.load("step.npy")).all():
        sys.exit("%s: the exported file and the step differ" % name)
    theirs, found = by_onnxruntime(feeds, output.name, 1)
    usual, _ = by_onnxruntime(feeds, output.name, None)
    for operator, n in operators.items():
        if found[operator] != n:
            sys.exit("%s: %d %s, wanted are %d: %s" % (name, found[operator], operator, n, dict(found)))
    # Floats of their own kernels may put a code of data on the other side of its tie: few samples, one step apart.
    data_are_codes = "a=" in spec and "a=off" not in spec
    apart = numpy.abs(ours - theirs) > 2e-5 * numpy.abs(theirs).max()
    if apart.any(axis=-1).mean() > (0.03 if data_are_codes else 0) or distance(ours, theirs) > 0.05:
        sys.exit("%s: at accuracy level 1 ONNX Runtime differs by %g, in %g of the rows"
                 % (name, distance(ours, theirs), apart.any(axis=-1).mean()))
    if rounded and distance(usual, theirs) < 1e-4:
        sys.exit("%s: the session option changes nothing, %g" % (name, distance(usual, theirs)))
    print("%-100s packed %2d, level 1 %.2g, usual %.2g" % (name, len(packed), distance(ours, theirs), distance(usual, theirs)))
    if packed and target == "ort" and not data_are_codes:
        again(qcc, data, name)


def again(qcc, data, name):
    """The file is read and trained as it is: scales, zero points and types of codes are what they were."""
    before, old = weights_of("q.onnx")
    train(qcc, "q.onnx", data, None, None, "again.onnx")
    after, new = weights_of("again.onnx")
    if {k: w.data_type for k, w in before.items()} != {k: w.data_type for k, w in after.items()}:
        sys.exit("%s: codes are of other types as the file was trained again" % name)
    held = [{i.name: i.raw_data for i in m.graph.initializer} for m in (old, new)]
    scales = {n.input[k] for n in old.graph.node if n.op_type == "DequantizeLinear" for k in range(1, len(n.input))}
    if any(held[0].get(s) != held[1].get(s) for s in scales):
        sys.exit("%s: scales changed as the file was trained again" % name)
    run(qcc, "predict", "again.onnx", *data[0], "--output", "file.npy")
    run(qcc, "predict", "s.step.onnx", *data[0], "--checkpoint", "run", "--output", "step.npy")
    if not (numpy.load("file.npy") == numpy.load("step.npy")).all():
        sys.exit("%s: the file that was trained again and its step differ" % name)


def check_alone(qcc, source, model, spec, widened):
    read = as_onnx(qcc, source, model)
    feeds = feeds_of(read, numpy.random.default_rng(7))
    output = read.graph.output[0].name
    words = []
    for k, v in feeds.items():
        numpy.save("x%d.npy" % len(words), v)
        words += ["--data", "%s=x%d.npy" % (k, len(words))]
    told = run(qcc, "export", os.path.join(source, model), "--quant", spec, "-o", "q.onnx")
    said = re.search(r"makes floats of the codes of (\d+) weight", told)
    if (int(said.group(1)) if said else 0) != widened:
        sys.exit("%s %s: %d weights are widened, said is\n%s" % (model, spec, widened, told))
    run(qcc, "predict", "q.onnx", *words, "--output", "file.npy")
    ours = numpy.load("file.npy")
    for floats in (False, True):
        theirs, found = by_onnxruntime(feeds, output, 1, floats)
        if distance(ours, theirs) > 2e-5 or found["DequantizeLinear"] != (0 if floats else widened):
            sys.exit("%s %s: differs by %g, operators %s" % (model, spec, distance(ours, theirs), dict(found)))
    print("%-100s without training, widened %d" % ("%s %s" % (model, spec), widened))


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    os.chdir(folder)
    for case in ALONE:
        check_alone(qcc, source, *case)
    for case in CASES:
        check(qcc, source, *case)


main()
