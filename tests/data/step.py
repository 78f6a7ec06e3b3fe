"""What others say of our training files.

    step.py FOLDER

For each NAME.step.onnx: onnx's checker takes the combined graph (the model's, and the algorithm behind it), and
onnxruntime runs the file as the model that it also is.  For each NAME.flat.onnx: onnxruntime computes the outputs that
NAME.values holds, from its inputs (lines: "in" or "out", name, element type, shape, numbers).
"""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime


def combined(model):
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    (info,) = model.training_info
    for field in ("node", "initializer", "sparse_initializer", "input", "output", "value_info"):
        getattr(whole.graph, field).extend(getattr(info.algorithm, field))
    del whole.training_info[:]
    return whole


def dense(model):
    """onnx's inference of shapes calls the type of a sparse initializer sparse, which no operator takes."""
    for t in model.graph.sparse_initializer:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.values.data_type)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(list(t.dims), dtype), t.values.name))
    del model.graph.sparse_initializer[:]
    return model


def check_bindings(model):
    (info,) = model.training_info
    known = {t.name for g in (model.graph, info.algorithm) for t in g.initializer}
    known |= {t.values.name for t in info.algorithm.sparse_initializer}
    outputs = {o.name for o in info.algorithm.output}
    keys = [b.key for b in info.update_binding]
    assert len(set(keys)) == len(keys) and set(keys) <= known, keys
    assert {b.value for b in info.update_binding} <= outputs, outputs
    own = {name for n in info.algorithm.node for name in n.output if name}
    assert all(name.startswith("qcc.") for name in own), own
    theirs = {t.name for t in model.graph.initializer} | {v.name for v in model.graph.input}
    inner = own | known | {v.name for v in info.algorithm.input}
    read = {name for n in info.algorithm.node for name in n.input if name}
    assert read <= inner | theirs, read - inner - theirs


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def values(path):
    for line in open(path):
        kind, name, dtype, shape, *numbers = line.split()
        dims = [int(d) for d in shape.split("x")] if shape != "-" else []
        yield kind, name, np.array([float(n) for n in numbers]).astype(dtype).reshape(dims)


def main(folder):
    steps = sorted(glob.glob(os.path.join(folder, "*.step.onnx")))
    flats = sorted(glob.glob(os.path.join(folder, "*.flat.onnx")))
    assert steps and flats
    for path in steps:
        model = onnx.load(path)
        onnx.checker.check_model(model)
        onnx.checker.check_model(combined(model))
        onnx.checker.check_model(dense(combined(model)), full_check=True)
        check_bindings(model)
        session(path)
    for path in flats:
        onnx.checker.check_model(onnx.load(path), full_check=True)
        run = list(values(path.replace(".flat.onnx", ".values")))
        want = [(n, v) for kind, n, v in run if kind == "out"]
        got = session(path).run([n for n, _ in want], {n: v for kind, n, v in run if kind == "in"})
        for (name, v), y in zip(want, got):
            np.testing.assert_allclose(y, v, rtol=2e-5, atol=1e-6, err_msg=path + " " + name)
            assert y.dtype == v.dtype and y.shape == v.shape, name
    print(len(steps), "steps,", len(flats), "flat")


main(sys.argv[1])
