"""What trains is what deploys: models are trained on codes for some steps, exported, and run by ONNX Runtime, which has to
come to the same bits as `qcc predict` on the exported file and on the step with its checkpoint.

usage: deployed.py QCC SOURCE FOLDER
"""
import os
import subprocess
import sys
from collections import Counter

import numpy
import onnx
import onnxruntime

SAMPLES = 64
EXACT = "session.x64quantprecision"  # without VNNI two products of u8 and i8 are summed in 16 bits otherwise, which saturate

# model, --quant and what follows it, operators on codes that ONNX Runtime must come to (with none beside them on floats), what may differ
CASES = [
    ("examples/models/mlp.qir", "w8a8", {"QGemm": 2}, 0),
    ("examples/models/mlp.qir", "w8a8,a=uint8:asym:minmax", {"QGemm": 2}, 0),
    ("examples/models/cnn.qir", "w8a8", {"QLinearConv": 2, "NhwcMaxPool": 2, "QGemm": 1}, 0),
    ("examples/models/cnn.qir", "w8a8,a=uint8:asym:pct=99.9", {"QLinearConv": 2, "QGemm": 1}, 0),
    ("examples/models/cnn.qir", "w4a8", {"QLinearConv": 2, "QGemm": 1}, 0),
    ("examples/models/cnn.qir", "w4a4", {"QLinearConv": 2, "QGemm": 1}, 0),
    ("examples/models/cnn.qir", "w2a2", {"QLinearConv": 2, "QGemm": 1}, 0),
    # Clips from 0 to 6 whose bounds are met: observed, stated wider, learned
    ("tests/data/mobile_block.qir", "w8a8", {"QLinearConv": 3, "QLinearAdd": 1, "QGemm": 1, "Clip": 0}, 0),
    ("tests/data/mobile_block.qir", "w8a8,a=uint8:asym:ema:init=20", {"QLinearConv": 3, "QLinearAdd": 1, "QGemm": 1}, 0),
    ("tests/data/mobile_block.qir", "w8a8,a=uint8:asym:pct=99", {"QLinearConv": 3, "QLinearAdd": 1, "QGemm": 1}, 0),
    ("tests/data/mobile_block.qir", "w8a8,a=uint8:lsq", {"QLinearConv": 3, "QGemm": 1}, 0),
    # functions of one number are tables of codes
    ("tests/data/gated_block.qir", "w8a8", {"QLinearConv": 4, "QLinearSigmoid": 2, "QLinearMul": 2, "QLinearLeakyRelu": 1,
                                            "QLinearGlobalAveragePool": 1, "QGemm": 1}, 0),
    ("tests/data/exports/cnn-training-16-static.onnx", "w8a8", {"QLinearConv": 2, "QGemm": 1}, 0),
    # norms that stay are folded when they are deployed
    ("tests/data/exports/cnn-training-16-static.onnx", "w8a8 --bn train", {"QLinearConv": 2, "QGemm": 1}, 0),
    ("tests/data/exports/cnn-training-16-static.onnx", "w8a8 --bn frozen", {"QLinearConv": 2, "QGemm": 1}, 0),
    ("tests/data/exports/cnn-training-16-static.onnx", "w4a4 --bn pytorch", {"QLinearConv": 1, "QGemm": 1}, 0),
    ("tests/data/exports/shuffle-training-16-static.onnx", "w8a8", {"QLinearConv": 4, "QGemm": 1}, 0),
    ("tests/data/exports/shuffle-eval-16-dynamic.onnx", "w8a8", {"QLinearConv": 4, "QGemm": 1}, 0),
    # what is split, and laid side by side with other scales; seven bits, since without VNNI ONNX Runtime cuts off what
    # two products of eight take together beyond 16
    ("tests/data/joined_block.qir", "w7a8", {"QLinearConv": 4, "QLinearConcat": 1, "Split": 1, "QGemm": 1,
                                             "DequantizeLinear": 0}, 0),
    # stacks of matrices, whose products take one scale and zero point
    ("tests/data/stacked.qir", "w7a8", {"QLinearMatMul": 1, "MatMulIntegerToFloat": 1, "Relu": 0}, 1e-6),
    ("tests/data/stacked.qir", "w7a8,w=uint7:asym", {"QLinearMatMul": 1, "MatMulIntegerToFloat": 1}, 1e-6),
    # recurrent layers: weights as codes, products of floats; and opened, products of codes
    ("tests/data/exports/lstm-training-16-static.onnx", "w7a8", {"LSTM": 2, "QGemm": 1}, 1e-6),
    ("tests/data/exports/lstm-eval-11-dynamic.onnx", "w4a8,w=int4:tensor", {"LSTM": 2, "QGemm": 1}, 1e-6),
    ("tests/data/exports/lstm-eval-16-dynamic.onnx", "w7a8 --quant-op op:LSTM=a=uint8:asym:ema",
     {"LSTM": 0, "MatMulIntegerToFloat": 24, "QGemm": 1}, 1e-6),
    ("tests/data/recurrent.qir", "w7a8", {"GRU": 1, "RNN": 1, "QGemm": 1}, 1e-6),
    ("tests/data/recurrent.qir", "w7a8 --quant-op op:GRU=a=uint8:asym:ema --quant-op op:RNN=a=uint8:asym:ema",
     {"GRU": 0, "RNN": 0, "MatMulIntegerToFloat": 18, "QGemm": 1}, 1e-6),
    # tables: their rows are codes
    ("examples/models/gpt.qir", "w8 --quant-op op:MatMul=off --quant-op op:Gather=w=int8:row",
     {"Gather": 2, "DequantizeLinear": 1}, 1e-5),
    ("examples/models/gpt.qir", "w8 --quant-op op:MatMul=off --quant-op op:Gather=w=int4:group=16:asym",
     {"Gather": 3, "DequantizeLinear": 1}, 1e-5),
    # floats of their own kernels: norms, softmax
    ("tests/data/exports/mlp-eval-16-dynamic.onnx", "w8a8", {"QGemm": 3}, 1e-6),
    ("tests/data/exports/vit-eval-16-dynamic.onnx", "w8a8", {"MatMulIntegerToFloat": 5, "QLinearConv": 1}, 1e-4),
    ("tests/data/exports/llama-eval-16-dynamic.onnx", "w8a8", {"MatMulIntegerToFloat": 8}, 1e-4),
]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: exit %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
    return done.stdout


def sizes(value):
    return [d.dim_value or SAMPLES for d in value.type.tensor_type.shape.dim]


def as_onnx(qcc, source, model):
    """The model as a file that Python reads, for its signature."""
    path = os.path.join(source, model)
    if not model.endswith(".qir"):
        return onnx.load(path)
    run(qcc, path, "--emit", "onnx", "-o", "model.onnx")
    return onnx.load("model.onnx")


def feeds_of(model, rng):
    stored = {i.name for i in model.graph.initializer}
    feeds = {}
    for i in model.graph.input:
        if i.name in stored:
            continue
        shape = [SAMPLES] + sizes(i)[1:]
        floats = i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        feeds[i.name] = (rng.standard_normal(shape).astype(numpy.float32) if floats
                         else rng.integers(0, 8, shape).astype(numpy.int64))
    return feeds


def by_onnxruntime(feeds, output, batch):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = "optimized.onnx"
    options.log_severity_level = 4
    options.add_session_config_entry(EXACT, "1")
    session = onnxruntime.InferenceSession("q.onnx", options, providers=["CPUExecutionProvider"])
    parts = [session.run([output], {k: v[at:at + batch] for k, v in feeds.items()})[0] for at in range(0, SAMPLES, batch)]
    return numpy.concatenate(parts), Counter(n.op_type for n in onnx.load("optimized.onnx").graph.node)


def check(qcc, source, model, spec, wanted, most):
    rng = numpy.random.default_rng(7)
    read = as_onnx(qcc, source, model)
    feeds = feeds_of(read, rng)
    output = read.graph.output[0]
    target = rng.standard_normal([SAMPLES] + sizes(output)[1:]).astype(numpy.float32)
    data = []
    for k, v in feeds.items():
        name = "x%d.npy" % len(data)
        numpy.save(name, v)
        data += ["--data", "%s=%s" % (k, name)]
    numpy.save("target.npy", target)
    run("rm", "-rf", "run", "q.onnx", "s.step.onnx")
    run(qcc, os.path.join(source, model), "--loss", "mse:" + output.name, "--optimizer", "adamw:lr=1e-3", "--quant", *spec.split(),
        "-o", "s.step.onnx")
    run(qcc, "train", "s.step.onnx", *data, "--target", "target.npy", "--steps", "5", "--checkpoint", "run", "--progress",
        "none", "-o", "q.onnx")
    run(qcc, "predict", "q.onnx", *data, "--output", "file.npy")
    run(qcc, "predict", "s.step.onnx", *data, "--checkpoint", "run", "--output", "step.npy")
    ours, step = numpy.load("file.npy"), numpy.load("step.npy")
    first = next(i for i in read.graph.input if i.name in feeds)
    static = first.type.tensor_type.shape.dim[0].dim_value
    theirs, operators = by_onnxruntime(feeds, output.name, static or SAMPLES)
    if not (ours == step).all():
        sys.exit("%s %s: the exported file and the step differ" % (model, spec))
    for operator, n in wanted.items():
        if operators[operator] != n:
            sys.exit("%s %s: %d %s, wanted are %d: %s" % (model, spec, operators[operator], operator, n, dict(operators)))
    worst = float(numpy.abs(ours - theirs).max())
    if worst > most * float(numpy.abs(theirs).max()):
        sys.exit("%s %s: ONNX Runtime differs by %g in %.4f of the results" % (model, spec, worst, (ours != theirs).mean()))
    print("%-55s %-28s equal %.6f, most %.2g" % (model, spec, (ours == theirs).mean(), worst))


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    os.chdir(folder)
    for case in CASES:
        check(qcc, source, *case)


if __name__ == "__main__":
    main()
