"""What quantize_static makes of exported models."""
import os
import tempfile

import numpy as np
import onnx
import onnxruntime

EXPORTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "exports")


class Drawn:
    """Calibration data: a few batches of what fits the inputs."""

    def __init__(self, path):
        rng = np.random.default_rng(2)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.batches = iter([{i.name: self.draw(rng, i) for i in session.get_inputs()} for _ in range(4)])

    def draw(self, rng, value):
        shape = [d if isinstance(d, int) else 2 for d in value.shape]
        if "int" in value.type:
            return rng.integers(0, 2, shape).astype(np.int64)
        return rng.uniform(-1, 1, shape).astype(np.float32)

    def get_next(self):
        return next(self.batches, None)


def by_quantize_static(name, act, per):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(Drawn, CalibrationDataReader):
        pass

    with tempfile.TemporaryDirectory() as folder:
        plain, to = os.path.join(folder, "plain.onnx"), os.path.join(folder, "quantized.onnx")
        quant_pre_process(os.path.join(EXPORTS, name + ".onnx"), plain)
        kind = QuantType.QUInt8 if act == "u8" else QuantType.QInt8
        quantize_static(plain, to, Reader(plain), quant_format=QuantFormat.QDQ, per_channel=per == "channel",
                        activation_type=kind, weight_type=QuantType.QInt8)
        return onnx.load(to)


STATIC = ["%s-%s-%s" % (name, act, per)
          for name in ("mlp-eval-13-static", "cnn-eval-13-static", "shuffle-eval-13-static", "llama-eval-13-static",
                       "lstm-eval-13-static")
          for act in ("u8", "s8") for per in ("tensor", "channel")]
