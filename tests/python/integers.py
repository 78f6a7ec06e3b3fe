"""Models --for integer-only, trained for some steps: no operator of the file reads or gives a float but the quantizer of an
input and the dequantizer of a result; onnx's checker takes it; and ONNX Runtime and onnx's reference implementation compute the
results of `qcc predict`, bit for bit, over batches that saturate some codes.

usage: integers.py QCC SOURCE FOLDER [WORD]    those whose name has WORD
"""
import os
import sys

import numpy
import onnx
import onnx.reference
import onnxruntime

sys.dont_write_bytecode = True
from deployed import EXACT, run  # noqa: E402

FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
BATCH, REFERENCE = 32, 2  # samples that ONNX Runtime computes, and the reference implementation

# model, --quant
CASES = [
    ("examples/models/mlp.qir", "w8a8"),
    ("examples/models/mlp.qir", "w4a8"),
    ("examples/models/cnn.qir", "w8a8"),
    ("tests/data/residual.qir", "w8a8"),
    ("tests/data/residual.qir", "w8a8,w=int8:channel:pow2,a=uint8:asym:pow2"),
    ("tests/data/mobile_block.qir", "w8a8"),
    ("tests/data/joined_block.qir", "w8a8"),
    ("tests/data/gated_block.qir", "w8a8"),
]


def sizes(value, batch):
    return [batch] + [d.dim_value for d in value.type.tensor_type.shape.dim][1:]


def no_floats(model):
    """Complains of operators that compute floats; returns how many nodes there are."""
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    graph = model.graph
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.output, *graph.value_info]}
    types.update({t.name: t.data_type for t in graph.initializer})
    ends, results = {i.name for i in graph.input}, {o.name for o in graph.output}
    for n in graph.node:
        if n.op_type == "Constant":
            continue
        if n.op_type == "QuantizeLinear" and n.input[0] in ends:
            continue
        if n.op_type == "DequantizeLinear" and n.output[0] in results:
            continue
        floats = [v for v in [*n.input, *n.output] if v and types[v] in FLOATS]
        assert not floats, "%s %s has floats: %s" % (n.op_type, n.name, floats)
        assert n.domain == "", n.domain
    return len(graph.node)


def check(qcc, source, path, spec):
    run(qcc, os.path.join(source, path), "--emit", "onnx", "-o", "model.onnx")
    model = onnx.load("model.onnx")
    stored = {i.name for i in model.graph.initializer}
    value, output = [i for i in model.graph.input if i.name not in stored][0], model.graph.output[0].name
    rng = numpy.random.default_rng(31)
    x = rng.standard_normal(sizes(value, 2 * BATCH)).astype(numpy.float32)
    numpy.save("x.npy", x[:BATCH])
    numpy.save("target.npy", rng.standard_normal(sizes(model.graph.output[0], BATCH)).astype(numpy.float32))
    run("rm", "-rf", "run", "q.onnx")
    run(qcc, "train", os.path.join(source, path), "--data", value.name + "=x.npy", "--target", "target.npy", "--loss", "mse:" + output,
        "--optimizer", "adamw:lr=1e-3", "--quant", spec, "--for", "integer-only", "--batch", "8", "--steps", "6",
        "--checkpoint", "run", "--progress", "none", "-o", "q.onnx")
    file = onnx.load("q.onnx")
    onnx.checker.check_model(file, full_check=True)
    nodes = no_floats(file)
    x = 1.5 * x[BATCH:]
    numpy.save("more.npy", x)
    run(qcc, "predict", "q.onnx", "--data", value.name + "=more.npy", "--output", "y.npy", "-q")
    y = numpy.load("y.npy")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(EXACT, "1")
    session = onnxruntime.InferenceSession("q.onnx", options, providers=["CPUExecutionProvider"])
    assert numpy.array_equal(session.run(None, {value.name: x})[0], y), "ONNX Runtime differs"
    file.opset_import[0].version = max(19, file.opset_import[0].version)  # the reference has no older quantizers; nothing else changed
    reference = onnx.reference.ReferenceEvaluator(file)
    assert numpy.array_equal(reference.run(None, {value.name: x[:REFERENCE]})[0], y[:REFERENCE]), "onnx's reference differs"
    print("%s %s: %d nodes, no floats; %d results equal" % (path, spec, nodes, y.size))


if __name__ == "__main__":
    qcc, source, folder = sys.argv[1:4]
    sys.path.insert(0, os.path.join(source, "tests/data"))
    os.chdir(folder)
    for case in CASES:
        if len(sys.argv) < 5 or sys.argv[4] in case[0]:
            check(qcc, source, *case)
