"""Networks that Brevitas exports in QONNX's operators, of five seeds: qcc computes what Brevitas does, writes a file that nobody
trained as it was, and trains the others.

usage: qonnx.py QCC FOLDER
"""
import glob
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from qonnx import make_networks  # noqa: E402


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, "%s\n%s%s" % (" ".join(words), done.stdout, done.stderr)
    return done.stdout


def check(qcc, path):
    x = os.path.join(path, "x.npy")
    t = os.path.join(path, "t.npy")
    again, trained = os.path.join(path, "again.onnx"), os.path.join(path, "trained.onnx")
    model = os.path.join(path, "model.onnx")
    import onnx
    with open(os.path.join(path, "test_data_set_0", "input_0.pb"), "rb") as f:
        values = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
    numpy.save(x, values)
    numpy.save(t, numpy.arange(len(values)) % 3)
    run(qcc, "export", model, "-o", again, "-q")
    with open(model, "rb") as a, open(again, "rb") as b:
        assert a.read() == b.read(), path
    run(qcc, "train", model, "--batch", str(len(values)), "--data", "x=" + x, "--target", t, "--epochs", "2", "--no-save", "-o",
        trained, "-q")
    before, after = onnx.load(model), onnx.load(trained)
    assert [n.op_type for n in before.graph.node] == [n.op_type for n in after.graph.node], path


qcc, folder = sys.argv[1:]
for seed in range(5):
    at = os.path.join(folder, str(seed))
    os.makedirs(at)
    make_networks(at, 100 * seed)
    told = run(qcc, "check", "--suite", at)
    assert " 0 failed, 0 skipped" in told, told
    for path in sorted(glob.glob(os.path.join(at, "*"))):
        check(qcc, path)
print("25 networks")
