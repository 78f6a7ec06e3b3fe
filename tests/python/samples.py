"""A sample of every op, each as a model of its own, under onnx's checker, which infers the shapes again."""
import collections
import glob
import sys

import onnx

# What it refuses all the same: calls at the edge of what ONNX says (windows of no size, axes of no extent, Resize with
# neither sizes nor scales), and nodes whose last results nobody reads, which are left out where bodies have them.
KNOWN = {
    "batch_normalization": 14, "blackman_window": 4, "constant_of_shape": 6, "conv_transpose": 6, "einsum": 2,
    "hamming_window": 4, "hann_window": 2, "if": 4, "loop": 18, "mean_variance_normalization": 20, "one_hot": 4,
    "reshape": 3, "resize": 25, "resize_grad": 22, "scan": 16, "sequence_map": 6, "split": 5, "stft": 1, "top_k": 20,
}

paths = sorted(glob.glob(sys.argv[1] + "/*.onnx"))
assert len(paths) > 1000, len(paths)
refused = collections.defaultdict(list)
for path in paths:
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
    except Exception as e:  # whatever it raises, it refuses
        refused[path.split("/")[-1].split(".")[0]].append((path, str(e)))
worse = {op: list_ for op, list_ in refused.items() if len(list_) > KNOWN.get(op, 0)}
for op, list_ in worse.items():
    print(op, len(list_), "refused, first", list_[0][0].split("/")[-1], ":", list_[0][1][:400])
print(len(paths), "samples,", sum(map(len, refused.values())), "refused")
sys.exit(bool(worse))
