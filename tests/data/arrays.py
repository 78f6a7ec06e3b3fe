#!/usr/bin/env python3
"""Writes tests/data/arrays: small files in every form that data come in, made by NumPy (and PyTorch, for the two that
are to be refused).  usage: tests/data/arrays.py   (any NumPy; the torch files are left alone where there is no torch)

All numeric files hold 0 .. 23 as [4,2,3]; bool ones hold its lowest bit."""
import gzip, io, json, os, struct, zipfile
import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "arrays")
os.makedirs(here, exist_ok=True)
base = np.arange(24).reshape(4, 2, 3)


def path(name):
    return os.path.join(here, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)


def npy(array, version=None):
    f = io.BytesIO()
    np.lib.format.write_array(f, array, version=version)
    return f.getvalue()


def typed(descr):
    return (base % 2 == 1) if descr == "|b1" else base.astype(descr)


for descr in ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8",
              ">i2", ">u2", ">i4", ">u4", ">i8", ">u8", ">f2", ">f4", ">f8"]:
    order = {"|": "", "<": "", ">": "_big"}[descr[0]]
    write(f"{descr[1:]}{order}.npy", npy(typed(descr)))
write("fortran.npy", npy(np.asfortranarray(typed("<f4"))))
write("fortran_big.npy", npy(np.asfortranarray(typed(">i2"))))
write("version2.npy", npy(typed("<f4"), (2, 0)))
write("version3.npy", npy(typed("<f4"), (3, 0)))
write("empty.npy", npy(np.zeros((0, 2, 3), "f4")))
write("one.npy", npy(np.float32(5)))

x, y = typed("<f4"), np.array([3, 1, 2, 0])
np.savez(path("stored.npz"), x=x, y=y)
np.savez_compressed(path("packed.npz"), x=x, y=y)
np.savez_compressed(path("single.npz"), only=x)
limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 10
np.savez_compressed(path("zip64.npz"), x=x, y=y)
zipfile.ZIP64_LIMIT = limit

codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
for descr, code in codes.items():
    idx = bytes([0, 0, code, 3]) + struct.pack(">3I", 4, 2, 3) + base.astype(">" + descr).tobytes()
    write(f"{descr}.idx", idx)
    if descr == "u1":
        write("u1.idx.gz", gzip.compress(idx, mtime=0))

header = {"__metadata__": {"by": "arrays.py"}, "y": {"dtype": "I64", "shape": [4], "data_offsets": [0, 32]},
          "x": {"dtype": "F32", "shape": [4, 2, 3], "data_offsets": [32, 128]}}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
write("two.safetensors", struct.pack("<Q", len(text)) + text + y.tobytes() + x.tobytes())

tokens = np.arange(100, 120)
write("plain.bin", tokens.astype("<u2").tobytes())
write("head16.bin", struct.pack("<3i", 20240520, 1, 20) + b"\0" * 1012 + tokens.astype("<u2").tobytes())
write("head32.bin", struct.pack("<3i", 20240801, 7, 20) + b"\0" * 1012 + tokens.astype("<u4").tobytes())

with open(path("table.csv"), "w", newline="") as f:
    f.write('label,"pixel, 1",pixel2,x\r\n')
    for i in range(4):
        f.write(f'{3 - i},{i}.5, {10 * i} ,"{i}e-1"\r\n')

# what must be refused
write("objects.npy", npy(np.array([{"a": 1}, None], dtype=object)))
write("records.npy", npy(np.zeros(3, [("a", "<f4"), ("b", "<i4")])))
write("words.npy", npy(np.array(["one", "three"])))
write("complex.npy", npy(np.zeros(3, "<c8")))
with zipfile.ZipFile(path("no_arrays.npz"), "w") as z:
    z.writestr("readme.txt", "none")
try:
    import torch
    torch.save({"x": torch.zeros(2)}, path("new.pt"))
    torch.save({"x": torch.zeros(2)}, path("old.pt"), _use_new_zipfile_serialization=False)
except ImportError:
    pass
