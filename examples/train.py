#!/usr/bin/env python3
"""Trains a model from Python with nothing but the standard library: qcc by ctypes.

    QCC_LIBRARY=.../libqcc.so.0 train.py MODEL.qir OUT.onnx
"""
import ctypes
import math
import os
import random
import sys

BATCH, STEPS, F32 = 64, 500, 21


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 16),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("place", ctypes.c_int)]


class Source(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("bytes", ctypes.c_void_p), ("size", ctypes.c_uint64),
                ("read", ctypes.c_void_p), ("user", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class Sink(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("write", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class Result(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("step", ctypes.c_uint64), ("applied", ctypes.c_int), ("finite", ctypes.c_int),
                ("loss", ctypes.c_double), ("grad_norm", ctypes.c_double), ("lr", ctypes.c_double)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("report", ctypes.c_void_p), ("user", ctypes.c_void_p)]


qcc = ctypes.CDLL(os.environ.get("QCC_LIBRARY", "libqcc.so.0"))
qcc.qcc_flat_size.restype = ctypes.c_size_t


def check(status):
    if status:
        sys.exit(status)


def handle(function, *arguments):
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    return out


def tensor(rows, columns):
    values = (ctypes.c_float * (rows * columns))()
    dims = (ctypes.c_int64 * 16)(rows, columns)
    return values, Tensor(ctypes.sizeof(Tensor), F32, 2, dims, ctypes.cast(values, ctypes.c_void_p), ctypes.sizeof(values))


def main(model_path, out_path):
    options = Options(ctypes.sizeof(Options), ctypes.cast(qcc.qcc_report_stderr, ctypes.c_void_p))
    context = handle(qcc.qcc_open, ctypes.byref(options))
    source, sink = Source(path=model_path.encode()), Sink(path=out_path.encode())
    model = handle(qcc.qcc_read, context, ctypes.byref(source), b"--batch %d" % BATCH)
    step = handle(qcc.qcc_compile, model, b"--loss mse --optimizer adam:lr=5e-3")
    session = handle(qcc.qcc_start, step, None)
    (x, data), (y, target) = tensor(BATCH, 2), tensor(BATCH, 1)
    check(qcc.qcc_bind(session, b"x", ctypes.byref(data)))
    check(qcc.qcc_bind(session, b"target", ctypes.byref(target)))
    random.seed(1)
    result = Result(size=ctypes.sizeof(Result))
    for i in range(1, STEPS + 1):
        for k in range(BATCH):
            x[2 * k], x[2 * k + 1] = random.uniform(-2, 2), random.uniform(-1, 1)
            y[k] = math.sin(x[2 * k]) * x[2 * k + 1]
        check(qcc.qcc_run(session, 7, ctypes.byref(result)))
        if i % 100 == 0:
            print(f"step {i}  loss {result.loss:.6f}")
    n = qcc.qcc_flat_size(session)
    weights = (ctypes.c_float * n)()
    check(qcc.qcc_get_flat(session, weights, ctypes.c_size_t(n)))
    print(f"{n} parameters, the largest {max(map(abs, weights)):.2f}")
    check(qcc.qcc_export_session(session, None, ctypes.byref(sink)))
    qcc.qcc_close(context)
    return 0 if result.loss < 0.05 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
