"""BitNet, deployed: models are trained so for some steps and exported; the file and the step with its checkpoint (@eval) come to
the same bits, from sums of codes; weights are -1, 0 and 1 in four bits; `qcc run` of the file, which multiplies numbers as the
graph says, and ONNX Runtime come to the same results but for the order of their sums: ONNX Runtime as the graph stands, and with
its own products of few bits, which must not round data once more.

usage: bitnet.py QCC SOURCE FOLDER
"""
import os
import sys

import numpy
import onnx
import onnxruntime

sys.dont_write_bytecode = True
from deployed import SAMPLES, as_onnx, feeds_of, run, sizes  # noqa: E402

# model, words behind `--quant bitnet`, weights that are ternary, rows that may differ by codes, whether ONNX Runtime rounds data again
CASES = [
    ("examples/models/mlp.qir", "", 2, 0, False),
    ("examples/models/gpt.qir", "", 13, 0.3, True),
    ("examples/models/vit.qir", " --quant-op op:Conv=off", 13, 0, False),
]
LEVEL = "session.qdq_matmulnbits_accuracy_level"


def by_onnxruntime(feeds, output, batch, way):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if way == "plain":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if way == "fused":
        options.add_session_config_entry(LEVEL, "1")
    session = onnxruntime.InferenceSession("q.onnx", options, providers=["CPUExecutionProvider"])
    return numpy.concatenate([session.run([output], {k: v[at:at + batch] for k, v in feeds.items()})[0]
                              for at in range(0, SAMPLES, batch)])


def ternary(name, wanted):
    """Weights in four bits: two to a byte, of codes from -1 to 1, each of which is there."""
    model = onnx.load("q.onnx")
    found = [i for i in model.graph.initializer if i.data_type == onnx.TensorProto.INT4]
    if len(found) != wanted:
        sys.exit("%s: %d weights in four bits, wanted are %d" % (name, len(found), wanted))
    for i in found:
        codes = onnx.numpy_helper.to_array(i).astype(numpy.int8)
        if set(codes.ravel()) != {-1, 0, 1} or len(i.raw_data) != (codes.size + 1) // 2:
            sys.exit("%s: codes of %s: %s in %d bytes" % (name, i.name, sorted(set(codes.ravel())), len(i.raw_data)))


def check(qcc, source, model, more, wanted, others, rounded):
    rng = numpy.random.default_rng(7)
    read = as_onnx(qcc, source, model)
    feeds, output, name = feeds_of(read, rng), read.graph.output[0], "%s bitnet%s" % (model, more)
    numpy.save("target.npy", rng.standard_normal([SAMPLES] + sizes(output)[1:]).astype(numpy.float32))
    batch = next(i for i in read.graph.input if i.name in feeds).type.tensor_type.shape.dim[0].dim_value or SAMPLES
    data, inputs = [], []
    for k, v in feeds.items():
        numpy.save("all.%s.npy" % k, v)
        numpy.save("first.%s.npy" % k, v[:batch])
        data, inputs = data + ["--data", "%s=all.%s.npy" % (k, k)], inputs + ["--input", "%s=first.%s.npy" % (k, k)]
    run("rm", "-rf", "run", "q.onnx", "s.step.onnx")
    run(qcc, os.path.join(source, model), "--loss", "mse:" + output.name, "--optimizer", "adamw:lr=1e-3", "--quant", *("bitnet" + more).split(),
        "-o", "s.step.onnx")
    run(qcc, "train", "s.step.onnx", *data, "--target", "target.npy", "--steps", "4", "--checkpoint", "run", "--progress", "none",
        "-o", "q.onnx")
    ternary(name, wanted)
    run(qcc, "predict", "q.onnx", *data, "--output", "file.npy")
    run(qcc, "predict", "s.step.onnx", *data, "--checkpoint", "run", "--output", "step.npy")
    run(qcc, "run", "q.onnx", *inputs, "--output", output.name + "=ran.npy")
    ours = numpy.load("file.npy")
    if not (ours == numpy.load("step.npy")).all():
        sys.exit("%s: the exported file and the step differ" % name)
    # Floats of other kernels may put a code of data on the other side of its tie, of some two thousand on the way of a row.
    for way in ("run", "plain", "fused", "usual"):
        theirs = numpy.load("ran.npy") if way == "run" else by_onnxruntime(feeds, output.name, batch, way)
        apart = numpy.abs(ours[:len(theirs)] - theirs) / numpy.abs(theirs).max()
        rows, most = (apart > 2e-5).any(axis=-1).mean(), apart.max()
        print("%-40s %-6s most %.2g, %.2g of the rows" % (name, way, most, rows))
        if way == "usual" and rounded and rows < 0.9:
            sys.exit("%s: the session option changes nothing" % name)
        if way != "usual" and (rows > others or most > 0.05):
            sys.exit("%s, %s: the results differ" % (name, way))


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    os.chdir(folder)
    for case in CASES:
        check(qcc, source, *case)


main()
