"""Models whose codes are floats of few bits, as files: onnx's checker takes them, its reference implementation comes to our
results, and ONNX Runtime, where it has the format, as it runs the file literally; weights alone also as it fuses.

usage: float_codes.py QCC SOURCE FOLDER
"""
import os
import subprocess
import sys

import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

LEVELS = onnxruntime.GraphOptimizationLevel
TYPES = {"e4m3": (onnx.TensorProto.FLOAT8E4M3FN, 19), "e5m2": (onnx.TensorProto.FLOAT8E5M2, 19),
         "e2m1": (onnx.TensorProto.FLOAT4E2M1, 23), "e2m3": (onnx.TensorProto.FLOAT8E4M3FN, 19), "int8": (onnx.TensorProto.INT8, 21)}
FLOATS = ["e4m3", "e5m2", "e2m1"]
SPECS = [(q, "w=%s,a=%s" % (q, q), "generic") for q in FLOATS] + [
    ("e4m3", "w=e4m3:tensor,a=e5m2:minmax", "generic"), ("e4m3", "w=e4m3,a=off", "ort"), ("e5m2", "w=e5m2:tensor,a=off", "ort"),
    ("e2m3", "w=e2m3,a=off", "ort"), ("e2m3", "w=e3m2:block=32:e8m0,a=e4m3", "generic"),
    ("e4m3", "w=e4m3:group=16,a=int8", "generic"), ("e4m3", "w=e4m3:block=32:e8m0,a=e4m3:block=32:e8m0", "generic"),
    ("e2m1", "w=e2m1:block=32:e8m0,a=e2m1:block=32:e8m0", "generic"),
    ("int8", "w=int8:block=32:e8m0,a=int8:block=32:e8m0:narrow", "generic"),
    ("e2m1", "w=e2m1:block=16:e4m3:4or6,a=e2m1:block=16:e4m3", "generic"),
    ("e2m1", "w=e2m1:tile=16x16:e4m3,a=off", "generic")]


def of_onnxruntime(path, level, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def opset_of(q, spec):
    """Blocks came with 21, codes of powers of two as scales with 24."""
    return max(TYPES[q][1], 24 if "e8m0" in spec else 21 if "=16" in spec else 0)


def near(a, b):
    return numpy.abs(a - b).max() <= 1e-5 * numpy.abs(b).max()


def main(qcc, source, folder):
    os.chdir(folder)
    x = numpy.random.default_rng(3).random((64, 1, 16, 16), dtype=numpy.float32)
    numpy.save("x.npy", x)
    wrong = []
    for model in ("cnn", "mlp"):
        for q, spec, target in SPECS:
            if model == "cnn" and "group" in spec:
                continue
            data = spec.split(",a=")[1]
            remembers = data != "off" and "block" not in data
            seen = ["--calibrate", "x=x.npy"] if remembers else []
            subprocess.run([qcc, "export", "%s/examples/models/%s.qir" % (source, model), "--quant", spec, "--for", target,
                            "--batch", "64", "-o", "q.onnx", "-q"] + seen, check=True)
            subprocess.run([qcc, "predict", "q.onnx", "--data", "x=x.npy", "--batch", "64", "-o", "y.npy", "-q"], check=True)
            m = onnx.load("q.onnx")
            onnx.checker.check_model(m)
            ours = numpy.load("y.npy")
            checks = {"opset": m.opset_import[0].version == opset_of(q, spec),
                      "codes": sum(t.data_type == TYPES[q][0] and t.name.endswith(".codes") for t in m.graph.initializer) >= 2,
                      "reference": near(ReferenceEvaluator(m).run(None, {"x": x})[0], ours)}
            if opset_of(q, spec) < 23:
                checks["onnxruntime"] = near(of_onnxruntime("q.onnx", LEVELS.ORT_DISABLE_ALL, x), ours)
            if target == "ort":
                checks["fused"] = near(of_onnxruntime("q.onnx", LEVELS.ORT_ENABLE_ALL, x), ours)
            wrong += ["%s %s: %s" % (model, spec, k) for k, good in checks.items() if not good]
            print(model, spec, *checks)
    if wrong:
        sys.exit("\n".join(wrong))


main(*sys.argv[1:])
