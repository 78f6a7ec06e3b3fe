#!/usr/bin/env python3
"""What others take for the same work, in a process of its own: one line of JSON.

    peer.py check MODEL                    onnx.checker.check_model on the file
    peer.py load MODEL off|on              an onnxruntime session, its graph optimisations off or on
    peer.py run MODEL INPUT OUTPUT N       one thread: N runs on INPUT (.npy), the first result to OUTPUT

Times are of the work alone, imports of Python apart; "base" is the memory that those take.
"""
import json
import resource
import sys
import time


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Clock:
    def __enter__(self):
        self.wall, self.processor = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall = (time.perf_counter() - self.wall) * 1e3
        self.processor = (time.process_time() - self.processor) * 1e3

    def times(self):
        return {"wall_ms": self.wall, "processor_ms": self.processor}


def session(path, optimised):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(path):
    import onnx
    base = resident()
    with Clock() as clock:
        onnx.checker.check_model(path)
    return {"version": onnx.__version__, "base": base, **clock.times()}


def load(path, how):
    import onnxruntime as ort
    base = resident()
    with Clock() as clock:
        session(path, how == "on")
    return {"version": ort.__version__, "base": base, **clock.times()}


def run(path, given, result, n):
    import numpy as np
    import onnxruntime as ort
    base = resident()
    s, x, runs = session(path, True), np.load(given), []
    for i in range(int(n)):
        with Clock() as clock:
            y = s.run(None, {s.get_inputs()[0].name: x})[0]
        runs.append(clock.times())
        if i == 0:
            np.save(result, y)
    return {"version": ort.__version__, "base": base, "runs": runs, "largest": float(abs(y).max())}


if __name__ == "__main__":
    answer = {"check": check, "load": load, "run": run}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({**answer, "peak": resident()}))
