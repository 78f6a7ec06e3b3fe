"""A sample of every op, each as a model of its own, under onnx's checker, which infers the shapes again."""
import collections
import glob
import sys

import onnx

# Operators with calls that it refuses all the same, at the edge of what ONNX says: windows of no size, axes without
# extent, Resize with neither sizes nor scales, transposed windows that cut, pools that are VALID and round up (which its
# shapes do, and the formula of its text does not); last results that nobody reads and that are left out; types that it is
# too old for.
KNOWN = set(
    "attention average_pool batch_normalization blackman_window constant_of_shape conv_transpose einsum hamming_window "
    "hann_window if loop max_pool mean_variance_normalization one_hot quantize_linear reshape resize resize_grad scan "
    "sequence_map split stft top_k".split()
)

paths = sorted(glob.glob(sys.argv[1] + "/*.onnx"))
assert len(paths) > 1000, len(paths)
refused = collections.defaultdict(list)
for path in paths:
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
    except Exception as e:  # whatever it raises, it refuses
        refused[path.split("/")[-1].split(".")[0]].append((path, str(e)))
worse = {op: list_ for op, list_ in refused.items() if op not in KNOWN}
for op, list_ in worse.items():
    print(op, len(list_), "refused, first", list_[0][0].split("/")[-1], ":", list_[0][1][:400])
print(len(paths), "samples,", sum(map(len, refused.values())), "refused")
sys.exit(bool(worse))
