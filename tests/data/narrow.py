"""What others say of models in one narrow float type.

    narrow.py FOLDER

For each NAME.TYPE.onnx (TYPE is fp16 or bf16): onnx's checker takes it with all its types, and onnxruntime computes the
outputs that NAME.TYPE.values holds, from its inputs (lines: "in" or "out", name, element type, shape, numbers).  Its CPU
has bf16 kernels for few operators; where it lacks one that is no failure.
"""
import glob
import sys

import numpy as np
import onnx
import onnxruntime

FLOAT16, BFLOAT16 = 10, 16
ROUGH = {"fp16": 4e-3, "bf16": 3e-2}


def session(path):
    onnxruntime.set_default_logger_severity(4)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def read_values(path):
    values = {"in": {}, "out": {}}
    for line in open(path):
        kind, name, dtype, shape, *numbers = line.split()
        dims = [int(d) for d in shape.split("x")]
        values[kind][name] = np.array(numbers, np.float64).astype(dtype).reshape(dims)
    return values


def bf16_bits(x):
    """Rounded to nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def run(path, types, values):
    feeds = {}
    for name, x in values["in"].items():
        if types[name] == BFLOAT16:
            feeds[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bf16_bits(x), BFLOAT16)
        else:
            feeds[name] = onnxruntime.OrtValue.ortvalue_from_numpy(x.astype(np.float16) if types[name] == FLOAT16 else x)
    names = list(values["out"])
    results = session(path).run_with_ort_values(names, feeds)
    return dict(zip(names, (r.numpy().astype(np.float64) for r in results)))


def compare(path, kind):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    values = read_values(path[: -len("onnx")] + "values")
    try:
        got = run(path, types, values)
    except Exception as e:
        if kind == "bf16" and ("NOT_IMPLEMENTED" in str(e) or "bfloat16" in str(e).lower()):
            return 0
        sys.exit(f"{path}: {e}")
    for name, want in values["out"].items():
        apart = np.abs(want - got[name]).max() / max(1e-6, np.abs(want).max())
        if not apart <= ROUGH[kind]:
            sys.exit(f"{path}: {name} is {apart} from ours")
    return 1


for kind in ROUGH:
    paths = sorted(glob.glob(f"{sys.argv[1]}/*.{kind}.onnx"))
    ran = sum(compare(path, kind) for path in paths)
    print(f"{kind}: {len(paths)} files checked, {ran} ran")
    for path in sorted(glob.glob(f"{sys.argv[1]}/*.{kind}.kept.onnx")):
        onnx.checker.check_model(onnx.load(path), full_check=True)
    if not paths or (kind == "fp16" and ran != len(paths)):
        sys.exit("nothing ran")
