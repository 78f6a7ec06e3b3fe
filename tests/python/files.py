"""Reads what tests/python/files.c wrote."""
import struct
import sys
import zipfile

import numpy
import safetensors
import safetensors.numpy

folder = sys.argv[1]


def equal(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")


# A checkpoint, through the link that people use.
path = folder + "/run/best"
states = safetensors.numpy.load_file(path)
equal("states", sorted(states), sorted(["w.b", "qcc.step", "w.a", 'mask\n"\u00e9"', "four"]))
equal("w.b", (states["w.b"].dtype.str, states["w.b"].shape), ("<f4", (10, 3)))
equal("w.b", states["w.b"].ravel().tolist(), [3500.0 + i for i in range(30)])
equal("qcc.step", int(states["qcc.step"]), 3507)
equal("w.a", states["w.a"].tolist(), [3514.0 + i for i in range(10)])
equal("four", states["four"].shape, (5,))
with safetensors.safe_open(path, "np") as f:
    notes = f.metadata()
for key, value in {
    "qcc.step": "500",
    "qcc.seed": str(2**64 - 1),
    "qcc.best": "0.1",
    "property.who": 'a "person"',
}.items():
    equal(key, notes[key], value)

# Arrays by name.
arrays = numpy.load(folder + "/arrays.npz")
equal("arrays", sorted(arrays.files), ["a.b", "\u00e9"])
equal("a.b", (arrays["a.b"].dtype.str, arrays["a.b"].tolist()), ("<f4", [[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]]))
equal("\u00e9", (arrays["\u00e9"].dtype.str, arrays["\u00e9"].tolist()), ("<f2", [0.5, 1.5]))

# A zip that begins behind 5 GB.
equal("far", zipfile.ZipFile(folder + "/far.zip").read("far"), b"away")

# The frames of an event file, counted without checksums.
with open(folder + "/events", "rb") as f:
    data, records, at = f.read(), 0, 0
while at < len(data):
    (n,) = struct.unpack_from("<Q", data, at)
    at += 8 + 4 + n + 4
    records += 1
equal("records", (records, at), (2, len(data)))
