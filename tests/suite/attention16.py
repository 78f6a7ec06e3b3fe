#!/usr/bin/env python3
"""Who is right about attention in 16 bits: the results that ONNX stores, or ours.

    attention16.py QCC WHERE [NAME..]

WHERE is a folder of ONNX 1.23's node tests or their archive; NAMEs are cases of it, by default those that exceptions.txt lists.  Each is computed in
f64 from the stored inputs: exactly, and with one rounding for every node of the operator's function.  Prints how far the
stored results and ours lie from both, in units of the last place.  Fails unless every expanded form, run by qcc, is within
half a unit of the nodes, and every single call nearer to the exact result than what is stored.  77: it lacks something.
"""
import os
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = {"Q": 0, "K": 1, "V": 2, "mask": 3, "lengths": 6}


def read(path):
    t = onnx.TensorProto()
    with open(path, "rb") as f:
        t.ParseFromString(f.read())
    return numpy_helper.to_array(t)


def seen(shape, mask, lengths, causal):
    """Which key a query may look at."""
    queries, keys = shape[-2:]
    i, j = np.arange(queries)[:, None], np.arange(keys)[None]
    may = np.ones(shape, bool)
    first = 0
    if lengths is not None:
        lengths = lengths.reshape(-1, 1, 1, 1)
        first = lengths - queries
        may &= j < lengths
    if causal:
        may &= j <= i + first
    if mask is not None:
        may &= mask if mask.dtype == bool else ~np.isneginf(mask.astype(np.float64))
    return may


def attend(call, at, dtype):
    """The formula in f64; `dtype` is what every node's result is rounded to, None for none."""
    once = (lambda x: x.astype(dtype).astype(np.float64)) if dtype is not None else (lambda x: x)
    q, k, v = (call[n].astype(np.float64) for n in "QKV")
    mask = call.get("mask")
    if mask is not None and mask.shape[-1] < k.shape[-2]:
        pad = [(0, 0)] * (mask.ndim - 1) + [(0, k.shape[-2] - mask.shape[-1])]
        mask = np.pad(mask, pad, constant_values=False if mask.dtype == bool else -np.inf)
    scale = once(np.array(np.sqrt(at.get("scale", 1 / np.sqrt(q.shape[-1])))))
    scores = once(once(q * scale) @ once(np.swapaxes(k, -1, -2) * scale))
    may = seen(scores.shape, mask, call.get("lengths"), at.get("is_causal"))
    if mask is not None and mask.dtype != bool:
        scores = once(scores + mask.astype(np.float64))
    scores = np.where(may, scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(most), 0, most))
    p = once(np.where(may.any(-1, keepdims=True), e / np.maximum(e.sum(-1, keepdims=True), 1e-300), 0))
    return p @ v


def heads(x, n):
    return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(0, 2, 1, 3)


def both(folder, inputs, want):
    """The exact result and that of the nodes."""
    node = onnx.load(os.path.join(folder.replace("_expanded", ""), "model.onnx")).graph.node[0]
    at = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    places = [i for i, name in enumerate(node.input) if name]
    call = {n: inputs[places.index(i)] for n, i in PLACES.items() if i in places}
    flat = call["Q"].ndim == 3
    if flat:
        for name in "QKV":
            call[name] = heads(call[name], at["q_num_heads" if name == "Q" else "kv_num_heads"])
    results = [attend(call, at, dtype) for dtype in (None, want.dtype)]
    return [y.transpose(0, 2, 1, 3).reshape(want.shape) if flat else y for y in results]


def units(x, exact, dtype):
    digits = 7 if dtype == ml_dtypes.bfloat16 else 10
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 1e-9))) - digits)
    return float((np.abs(x.astype(np.float64) - exact) / unit).max())


def case(qcc, folder):
    names = [x.name for x in onnx.load(os.path.join(folder, "model.onnx")).graph.input]
    data = os.path.join(folder, "test_data_set_0")
    paths = [os.path.join(data, "input_%d.pb" % i) for i in range(len(names))]
    want = read(os.path.join(data, "output_0.pb"))
    with tempfile.TemporaryDirectory() as out:
        y = os.path.join(out, "y.npy")
        feeds = [word for name, path in zip(names, paths) for word in ("--input", name + "=" + path)]
        subprocess.run([qcc, "run", os.path.join(folder, "model.onnx"), *feeds, "--output", "Y=" + y], check=True,
                       stdout=subprocess.DEVNULL)
        ours = np.load(y)
    ours = ours.view(want.dtype) if ours.dtype != want.dtype else ours
    exact, nodes = both(folder, [read(path) for path in paths], want)
    return [units(x, y, want.dtype) for y in (exact, nodes) for x in (want, ours)]


def listed():
    with open(os.path.join(HERE, "exceptions.txt"), encoding="utf-8") as f:
        return re.findall(r"^(test_attention\w+) +\[1\.23\]", f.read(), re.M)


def main(qcc, root, names):
    bad = 0
    print("%-50s %7s %7s %7s %7s" % ("units of the last place", "stored", "ours", "stored", "ours"))
    for name in names:
        exact_stored, exact_ours, nodes_stored, nodes_ours = case(qcc, os.path.join(root, name))
        good = nodes_ours <= 0.5 if name.endswith("_expanded") else exact_ours < exact_stored
        bad += not good
        print("%-50s %7.2f %7.2f %7.2f %7.2f%s" % (name, exact_stored, exact_ours, nodes_stored, nodes_ours,
                                                   "" if good else "  FAILED"))
    print("%d cases, %d failed; the first two from the exact result, the others from nodes rounded once" %
          (len(names), bad))
    return bad != 0 or not names


def unpacked(archive, names, into):
    """The folders of these cases, and of the calls that they expand."""
    wanted = set(names) | {name.replace("_expanded", "") for name in names}
    with tarfile.open(archive) as tar:
        # Python 3.11.2 (Debian 12) knows no filters yet.
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        for member in tar:
            if wanted & set(member.name.split("/")):
                tar.extract(member, into)
    return os.path.join(into, "node")


if __name__ == "__main__":
    qcc, where, names = sys.argv[1], os.environ.get("QCC_ONNX_1_23") or sys.argv[2], sys.argv[3:] or listed()
    if not os.path.exists(where):
        print("skipped: ONNX 1.23's node tests are not here:", where)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(qcc, where if os.path.isdir(where) else unpacked(where, names, folder), names))
