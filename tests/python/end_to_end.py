"""Every code of whole networks beside ONNX Runtime's: each network is trained on codes for some steps and exported; then, batch
by batch over forty of them, each quantized value of the file is compared between `qcc run` and a session with default
optimization.  Of networks whose values are integers throughout no code may differ; where there are floats between codes
(norms, Softmax, Tanh), so many per cent are equal, and where codes part first a quantizer of floats stands, which is named.

usage: end_to_end.py QCC SOURCE FOLDER [WORD]    those whose name has WORD
"""
import os
import sys
from collections import Counter

import numpy
import onnx
import onnxruntime

sys.dont_write_bytecode = True
from deployed import EXACT, run  # noqa: E402

BATCHES = 40
INT8 = "session.qdqisint8allowed"
# Without VNNI, EXACT takes kernels that do not saturate for data of u8; for data of i8 there are none, and it loads no file in
# which a weight has two readers: weights have a bit less there.
VNNI = any("vnni" in line for line in open("/proc/cpuinfo") if line.startswith("flags"))
INTEGERS = {"Conv", "Gemm", "MatMul", "Add", "Mul", "MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Flatten",
            "Reshape", "Transpose", "Slice", "Squeeze", "Sigmoid", "LeakyRelu"}
UNSIGNED, SHARED, SIGNED = "w8a8", "w8a8" if VNNI else "w7a8", "w8a8,a=int8:asym:ema" if VNNI else "w7a8,a=int8:asym:ema"

# model (a name of tests/data/networks.py, or a file), samples in a batch, rate, --quant, the least share of equal codes
CASES = [
    ("examples/models/mlp.qir", 64, "1e-3", UNSIGNED, 1),
    ("examples/models/mlp.qir", 64, "1e-3", SIGNED, 1),
    ("examples/models/cnn.qir", 32, "1e-3", UNSIGNED, 1),
    ("examples/models/cnn.qir", 32, "1e-3", SIGNED, 1),
    ("tests/data/mobile_block.qir", 32, "1e-3", UNSIGNED, 1),
    ("tests/data/mobile_block.qir", 32, "1e-3", SIGNED, 1),
    ("resnet18", 2, "1e-4", UNSIGNED, 0.999),
    ("resnet18", 2, "1e-4", SIGNED, 0.999),
    ("mobilenet_v2", 1, "1e-4", UNSIGNED, 0.999),
    ("mobilenet_v2", 1, "1e-4", SIGNED, 0.999),
    # known sizes: ONNX Runtime makes a Gemm of MatMul and Add, and integers of its bias, which are floats here
    ("examples/models/gpt.qir", 8, "1e-3", UNSIGNED, 0.99),
    ("tests/data/pytorch/gpt-dyn.onnx", 32, "1e-3", UNSIGNED, 0.99),
    ("vit_tiny", 8, "1e-3", UNSIGNED, 0.99),
    ("tests/data/pytorch/vit-dyn.onnx", 32, "1e-3", UNSIGNED, 0.99),
    ("lstm_cells", 32, "1e-3", SHARED, 0.99),
    ("tests/data/pytorch/lstm-dyn.onnx", 64, "1e-3", UNSIGNED, 0.99),
]


def model_of(qcc, source, model):
    """The path of a model, and the model for its signature."""
    if "/" not in model:
        from networks import NETWORKS
        onnx.save(NETWORKS[model](), "model.onnx")
        return "model.onnx", onnx.load("model.onnx")
    path = os.path.join(source, model)
    if path.endswith(".onnx"):
        return path, onnx.load(path)
    run(qcc, path, "--emit", "onnx", "-o", "model.onnx")
    return path, onnx.load("model.onnx")


def sizes(value, batch):
    return [batch] + [d.dim_value for d in value.type.tensor_type.shape.dim][1:]


def samples(model, n, rng):
    """Data of any kind: numbers of a normal distribution, tokens of a small vocabulary."""
    stored = {i.name for i in model.graph.initializer}
    feeds = {}
    for i in model.graph.input:
        if i.name not in stored:
            floats = i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
            feeds[i.name] = (rng.standard_normal(sizes(i, n)).astype(numpy.float32) if floats
                             else rng.integers(0, 8, sizes(i, n)).astype(numpy.int64))
    return feeds


def train(qcc, path, model, feeds, batch, rate, spec, rng):
    output, words = model.graph.output[0], []
    for i, (k, v) in enumerate(feeds.items()):
        numpy.save("d%d.npy" % i, v)
        words += ["--data", "%s=d%d.npy" % (k, i)]
    numpy.save("target.npy", rng.standard_normal(sizes(output, len(v))).astype(numpy.float32))
    run("rm", "-rf", "run", "q.onnx")
    run(qcc, "train", path, *words, "--target", "target.npy", "--loss", "mse:" + output.name, "--optimizer", "adamw:lr=" + rate,
        "--quant", spec, "--batch", str(batch), "--steps", "3", "--checkpoint", "run", "--progress", "none", "-o", "q.onnx")


def with_codes(path, to):
    """The file, every quantized value a result of it: their names in the order of the file."""
    model = onnx.load(path)
    types = {i.name: i.data_type for i in model.graph.initializer}
    types.update({n.output[0]: n.attribute[0].t.data_type for n in model.graph.node if n.op_type == "Constant"})
    names = []
    for n in model.graph.node:
        if n.op_type == "QuantizeLinear":
            names.append(n.output[0])
            model.graph.output.append(onnx.helper.make_tensor_value_info(n.output[0], types[n.input[2]], None))
    onnx.save(model, to)
    return names


def session_of(path, saved, spec):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    options.optimized_model_filepath = saved
    if spec == SIGNED:
        options.add_session_config_entry(INT8, "1")
    elif spec == UNSIGNED and not VNNI:
        options.add_session_config_entry(EXACT, "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def rounded_floats(path, names):
    """Those of the quantized values that are floats in the file, since not all that they are computed from are codes."""
    model = onnx.load(path)
    maker = {o: n for n in model.graph.node for o in n.output}
    stored = {i.name for i in model.graph.initializer}
    found = {}
    for name in names:
        node = maker.get(maker[name].input[0])
        while node is not None and node.op_type in ("Relu", "Clip"):
            node = maker.get(node.input[0])
        sources = [maker[i].op_type for i in node.input if i in maker] if node is not None else []
        floats = any(o not in ("DequantizeLinear", "Constant") for o in sources) or (
            node is not None and any(i in stored for i in node.input))
        if node is None or floats or node.op_type not in INTEGERS:
            found[name] = node.op_type if node is not None else "input"
    return found


def operators_of(path):
    counts = Counter(n.op_type for n in onnx.load(path).graph.node)
    return {k: v for k, v in counts.items() if k.startswith(("QLinear", "QGemm", "MatMulInteger"))}


def compare(qcc, session, feeds, names, batch):
    """Of each value: how many codes there are, how many differ, by how much at most."""
    counts = {name: [0, 0, 0] for name in names}
    words = [w for i, name in enumerate(names) for w in ("--output", "%s=c%d.npy" % (name, i))]
    for at in range(0, BATCHES * batch, batch):
        part = {k: v[at:at + batch] for k, v in feeds.items()}
        for i, (k, v) in enumerate(part.items()):
            numpy.save("i%d.npy" % i, v)
        run(qcc, "run", "codes.onnx", *[w for i, k in enumerate(part) for w in ("--input", "%s=i%d.npy" % (k, i))], *words)
        for i, (name, theirs) in enumerate(zip(names, session.run(names, part))):
            ours = numpy.load("c%d.npy" % i)
            if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                sys.exit("%s is %s%s here, %s%s there" % (name, ours.dtype, ours.shape, theirs.dtype, theirs.shape))
            apart = numpy.abs(ours.astype(int) - theirs.astype(int))
            counts[name][0] += ours.size
            counts[name][1] += int((apart != 0).sum())
            counts[name][2] = max(counts[name][2], int(apart.max()))
    return counts


def check(qcc, source, model, batch, rate, spec, least):
    rng = numpy.random.default_rng(11)
    path, read = model_of(qcc, source, model)
    feeds = samples(read, BATCHES * batch, rng)
    train(qcc, path, read, feeds, batch, rate, spec, rng)
    names = with_codes("q.onnx", "codes.onnx")
    session = session_of("codes.onnx", "optimized.onnx", spec)
    floats = rounded_floats("q.onnx", names)
    counts = compare(qcc, session, feeds, names, batch)
    codes, differ = sum(c[0] for c in counts.values()), sum(c[1] for c in counts.values())
    first = next((n for n in names if counts[n][1]), None)
    print("%-34s %-16s %4d values, %9d codes, %7d differ, %.5f %% equal, by %d at most; first %s; %s" % (
        model, spec, len(names), codes, differ, 100 - 100 * differ / codes, max(c[2] for c in counts.values()),
        "%s of %s (%d)" % (first, floats.get(first, "CODES"), counts[first][1]) if first else "none", operators_of("optimized.onnx")), flush=True)
    if codes - differ < least * codes:
        sys.exit("%s %s: too many codes differ from ONNX Runtime's" % (model, spec))
    if first and first not in floats:
        sys.exit("%s %s: %s differs first, which is no quantizer of floats" % (model, spec, first))


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    word = sys.argv[4] if len(sys.argv) > 4 else ""
    sys.path.insert(0, source + "/tests/data")
    os.chdir(folder)
    for case in CASES:
        if word in case[0]:
            check(qcc, source, *case)


if __name__ == "__main__":
    main()
