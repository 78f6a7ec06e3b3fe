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
         "e2m1": (onnx.TensorProto.FLOAT4E2M1, 23)}
SPECS = [(q, "w=%s,a=%s" % (q, q), "generic") for q in TYPES] + [("e4m3", "w=e4m3:tensor,a=e5m2:minmax", "generic"),
         ("e4m3", "w=e4m3:group=16,a=int8", "generic"), ("e4m3", "w=e4m3,a=off", "ort"), ("e5m2", "w=e5m2:tensor,a=off", "ort")]


def of_onnxruntime(path, level, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


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
            seen = ["--calibrate", "x=x.npy"] if "a=off" not in spec else []
            subprocess.run([qcc, "export", "%s/examples/models/%s.qir" % (source, model), "--quant", spec, "--for", target,
                            "--batch", "64", "-o", "q.onnx", "-q"] + seen, check=True)
            subprocess.run([qcc, "predict", "q.onnx", "--data", "x=x.npy", "-o", "y.npy", "-q"], check=True)
            m = onnx.load("q.onnx")
            onnx.checker.check_model(m)
            code, opset = TYPES[q]
            ours = numpy.load("y.npy")
            checks = {"opset": m.opset_import[0].version == (21 if "group" in spec else opset),
                      "codes": sum(t.data_type == code and t.name.endswith(".codes") for t in m.graph.initializer) >= 2,
                      "reference": near(ReferenceEvaluator(m).run(None, {"x": x})[0], ours)}
            if q != "e2m1":
                checks["onnxruntime"] = near(of_onnxruntime("q.onnx", LEVELS.ORT_DISABLE_ALL, x), ours)
            if target == "ort":
                checks["fused"] = near(of_onnxruntime("q.onnx", LEVELS.ORT_ENABLE_ALL, x), ours)
            wrong += ["%s %s: %s" % (model, spec, k) for k, good in checks.items() if not good]
            print(model, spec, *checks)
    if wrong:
        sys.exit("\n".join(wrong))


main(*sys.argv[1:])
