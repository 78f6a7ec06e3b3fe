"""qcc from Python: one file over ctypes, with numpy arrays in and out.

    import qcc
    events = qcc.train("model.onnx", {"x": x}, y, loss="cross_entropy", epochs=3, lr=1e-3, o="trained.onnx")
    y = qcc.predict("trained.onnx", {"x": x})

Options are those of the command, without dashes in front: lr=1e-3 is --lr 1e-3, no_shuffle=True is --no-shuffle, a list is an
option that comes several times, o="FILE" is -o FILE.  Data are arrays, or texts as --data takes them.  What goes wrong is
an Error with the command's own words.

Session runs steps one by one, as the C library does.  QCC_LIBRARY names the library where it is not installed.
"""
import ctypes
import json
import os
import sys
import tempfile
import warnings

import numpy

__all__ = ["Error", "Warning", "Session", "command", "evaluate", "export", "predict", "train", "version"]

F32, F64 = 21, 22
_TYPES = {"bool": 0, "int8": 5, "uint8": 6, "int16": 7, "uint16": 8, "int32": 9, "uint32": 10, "int64": 11, "uint64": 12,
          "float16": 19, "float32": F32, "float64": F64}
_NAMES = {number: name for name, number in _TYPES.items()}
FORWARD, BACKWARD, UPDATE, STEP, EVAL, ACCUMULATE, OBSERVE, LATER = 1, 2, 4, 7, 8, 16, 32, 64


class Error(Exception):
    """What the library says of a failure; `status` is the exit code that the command would have."""

    def __init__(self, status, text):
        super().__init__(text.strip() or _library.qcc_status_name(status).decode())
        self.status = status


class Warning(UserWarning):
    """A warning of the library's."""


class _Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 16),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("place", ctypes.c_int)]


class _Source(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("bytes", ctypes.c_void_p), ("size", ctypes.c_uint64),
                ("read", ctypes.c_void_p), ("user", ctypes.c_void_p), ("name", ctypes.c_char_p)]


_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Sink(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("write", _WRITE), ("user", ctypes.c_void_p)]


class _Message(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("status", ctypes.c_int), ("text", ctypes.c_char_p)]


_REPORT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Message))


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("report", _REPORT), ("user", ctypes.c_void_p)]


class _Info(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("shape", _Tensor)]


class Result(ctypes.Structure):
    """What a step came to: step, loss, grad_norm, lr, applied, finite."""
    _fields_ = [("size", ctypes.c_size_t), ("step", ctypes.c_uint64), ("applied", ctypes.c_int), ("finite", ctypes.c_int),
                ("loss", ctypes.c_double), ("grad_norm", ctypes.c_double), ("lr", ctypes.c_double)]


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("QCC_LIBRARY"), os.path.join(here, "..", "..", "..", "lib", "libqcc.so.0"), "libqcc.so.0"]
    for place in places:
        if place and (os.sep not in place or os.path.exists(place) or place == places[0]):
            library = ctypes.CDLL(place)
            break
    for name in ("qcc_version", "qcc_status_name"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("qcc_step_n_inputs", "qcc_n_parameters"):
        getattr(library, name).restype = ctypes.c_size_t
    for name in ("qcc_close", "qcc_end", "qcc_step_free", "qcc_model_free", "qcc_interrupt"):
        getattr(library, name).restype = None
    return library


_library = _load()


def version():
    """The version of the library."""
    return _library.qcc_version().decode()


def _plain(text):
    """What a message says; those of --messages json are objects."""
    if not text.startswith("{"):
        return text
    said = json.loads(text)
    lines = [": ".join(str(said[k]) for k in ("file", "place", "what") if said.get(k))]
    lines += ["  at: " + ", ".join(said["at"])] if said.get("at") else []
    return "\n".join(lines + ["  try: " + t for t in said.get("try", [])]) + "\n"


class _Context:
    """A context of the library, and the words that it has said."""

    def __init__(self):
        self.words, self.handle = [], ctypes.c_void_p()
        self.report = _REPORT(self._hear)  # as long as the context may call it
        options = _Options(ctypes.sizeof(_Options), self.report)
        status = _library.qcc_open(ctypes.byref(options), ctypes.byref(self.handle))
        if status:
            raise Error(status, "the library cannot start")

    def _hear(self, _, message):
        severity, text = message.contents.severity, _plain(message.contents.text.decode(errors="replace"))
        if severity == 0:
            self.words.append(text)
        elif severity == 1:
            warnings.warn(text.strip(), Warning, stacklevel=4)

    def check(self, status):
        words, self.words = "".join(self.words), []
        if status:
            raise Error(status, words)

    def new(self, function, *arguments):
        out = ctypes.c_void_p()
        self.check(function(*arguments, ctypes.byref(out)))
        return out

    def close(self):
        if self.handle:
            _library.qcc_close(self.handle)
            self.handle = None


# ---- the verbs ----

def _words(options):
    line = []
    for name, value in options.items():
        option = "-" + name if len(name) == 1 else "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            line += [option] if one is True else [option, str(one)]
    return line


class _Files:
    """Arrays on their way to the command: a folder that goes when the call is over."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="qcc-")
        self.n = 0
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, end):
        self.n += 1
        return os.path.join(self.folder.name, f"{self.n}{end}")

    def put(self, value):
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        path = self.path(".npy")
        numpy.save(path, numpy.asarray(value), allow_pickle=False)
        return path

    def data(self, option, values):
        if values is None:
            return []
        if not isinstance(values, dict):
            return [option, self.put(values)]
        return [word for name, value in values.items() for word in (option, f"{name}={self.put(value)}")]


def command(*words):
    """Runs a command line as the program does and gives what it prints; Error where it does not end with 0.

    command("explain", "model.onnx")
    """
    context, parts = _Context(), []

    def write(_, data, n):
        parts.append(ctypes.string_at(data, n))
        return 0

    sink = _Sink(path=b"-", write=_WRITE(write))
    line = [b"qcc"] + [os.fsencode(str(w)) for w in words]
    try:
        context.check(_library.qcc_command(context.handle, len(line), (ctypes.c_char_p * len(line))(*line),
                                           ctypes.byref(sink)))
    finally:
        context.close()
    return b"".join(parts).decode(errors="replace")


def _events(*words):
    text = command(*words, "--messages", "json", "-q")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def train(model, data, target=None, val=None, val_target=None, **options):
    """Trains a model or step and gives the events of the run (`epoch`, `val`, `wrote`, `end` ..), each a dictionary.

    `data` is an array, or a dictionary of arrays by the names of inputs; `target` likewise.
    """
    with _Files() as files:
        line = ["train", model, *files.data("--data", data), *files.data("--target", target), *files.data("--val", val),
                *files.data("--val-target", val_target), *_words(options)]
        return _events(*line, *(() if "progress" in options else ("--progress", "none")))


def evaluate(model, data, target=None, **options):
    """Loss and metrics of a model over data, every sample counted once: {"samples": .., "eval_loss": .., ..}."""
    with _Files() as files:
        events = _events("eval", model, *files.data("--data", data), *files.data("--target", target), *_words(options))
    return next(e for e in events if e["event"] == "eval")


def predict(model, data, output=None, **options):
    """What a model makes of whole data sets: an array, or with several names in `output` a dictionary of arrays."""
    names = [output] if output is None or isinstance(output, str) else list(output)
    with _Files() as files:
        paths = [files.path(".npy") for _ in names]
        line = ["predict", model, *files.data("--data", data), *_words(options)]
        for name, path in zip(names, paths):
            line += ["--output", f"{name}={path}" if name else path]
        _events(*line)
        arrays = [numpy.load(path, allow_pickle=False) for path in paths]
    return arrays[0] if len(names) == 1 else dict(zip(names, arrays))


def export(model, out, **options):
    """Writes the deployable model (checkpoint=.., dtype="fp16", verify=..) and gives what it came to."""
    return _events("export", model, "-o", out, *_words(options))


# ---- steps one by one ----

def _view(tensor):
    name = _NAMES.get(tensor.dtype)
    if name is None:
        raise Error(4, f"element type {tensor.dtype} is none of numpy's")
    raw = ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""
    return numpy.frombuffer(raw, dtype=name).reshape(tuple(tensor.dims[:tensor.rank])).copy()


class Session:
    """A model that is trained step by step.

    s = Session("model.onnx", batch=32, loss="mse", optimizer="adam:lr=1e-3")
    s.bind(x=x, target=y); print(s.run().loss); s.export("trained.onnx")
    """

    def __init__(self, model, **options):
        given = {k: v for k, v in options.items() if k in ("batch", "dim", "shape", "const", "opset")}
        rest = {k: v for k, v in options.items() if k not in given}
        self._context, self._bound, self._coming, self._next = _Context(), {}, {}, {}
        source = _Source(path=os.fsencode(model))
        try:
            self._model = self._new(_library.qcc_read, self._context.handle, ctypes.byref(source), self._text(given))
            self._step = self._new(_library.qcc_compile, self._model, self._text(rest))
            self._session = self._new(_library.qcc_start, self._step, None)
        except Error:
            self.close()
            raise

    def _new(self, function, *arguments):
        return self._context.new(function, *arguments)

    @staticmethod
    def _text(options):
        return " ".join(_words(options)).encode() or None

    def _list(self, count, at):
        infos = []
        for i in range(count(self._step)):
            info = _Info(size=ctypes.sizeof(_Info))
            self._context.check(at(self._step, ctypes.c_size_t(i), ctypes.byref(info)))
            infos.append((info.name.decode(), info.type.decode()))
        return infos

    def inputs(self):
        """Names and types of what is to be bound."""
        return self._list(_library.qcc_step_n_inputs, _library.qcc_step_input)

    def parameters(self):
        """Names and types of what is trained."""
        return self._list(_library.qcc_n_parameters, _library.qcc_parameter)

    def bind(self, arrays=None, **more):
        """Binds inputs to arrays, which are copied where they are not of the type that the input has."""
        return self._give(_library.qcc_bind, self._bound, {**(arrays or {}), **more})

    def bind_next(self, arrays=None, **more):
        """Binds inputs for the step after the next one: a GPU is sent them while it computes the next one."""
        return self._give(_library.qcc_bind_next, self._next, {**(arrays or {}), **more})

    def _give(self, function, kept, arrays):
        types = dict(self.inputs())
        for name, value in arrays.items():
            wanted = types.get(name, "").partition("[")[0]
            kinds = {"f32": "float32", "f64": "float64", "f16": "float16", "bool": "bool"}
            kind = kinds.get(wanted) or wanted.replace("i", "int", 1).replace("u", "uint", 1) or None
            if wanted.startswith("u"):
                kind = wanted.replace("u", "uint", 1)
            array = numpy.ascontiguousarray(value, dtype=kind if kind in _TYPES else None)
            self._context.check(function(self._session, name.encode(), ctypes.byref(self._tensor(array))))
            kept[name] = array  # as long as the session reads it
        return self

    @staticmethod
    def _tensor(array):
        if array.dtype.name not in _TYPES:
            raise TypeError(f"arrays of {array.dtype} have no place here")
        dims = (ctypes.c_int64 * 16)(*array.shape)
        return _Tensor(ctypes.sizeof(_Tensor), _TYPES[array.dtype.name], array.ndim, dims, array.ctypes.data, array.nbytes)

    def run(self, what=STEP):
        """Runs a step, or the sides of one (FORWARD | BACKWARD, UPDATE), or EVAL; OBSERVE shows
        a quantized step's quantizers what is bound, before its first step.  STEP | LATER tells of the step
        that was run so before it (`step` is 0: of none yet), while a GPU is at this one."""
        result = Result(size=ctypes.sizeof(Result))
        self._context.check(_library.qcc_run(self._session, what, ctypes.byref(result)))
        if what & FORWARD:  # what came is bound, and what was given before comes
            self._bound.update(self._coming)
            self._coming, self._next = self._next, {}
        return result

    def wait(self):
        """Waits for the last step that was run with LATER, and tells of it: its `step` is 0 where there is none."""
        result = Result(size=ctypes.sizeof(Result))
        self._context.check(_library.qcc_wait_step(self._session, ctypes.byref(result)))
        return result

    def __getitem__(self, name):
        """A copy of a value: an output, "loss", a parameter, "grad.NAME"."""
        tensor = _Tensor(size=ctypes.sizeof(_Tensor))
        self._context.check(_library.qcc_view(self._session, name.encode(), ctypes.byref(tensor)))
        return _view(tensor)

    def __setitem__(self, name, value):
        """Puts a value into a parameter or other state, or into a gradient between backward and update."""
        array = numpy.ascontiguousarray(value)
        array = array.astype("float32") if array.dtype == "float64" else array
        self._context.check(_library.qcc_put(self._session, name.encode(), ctypes.byref(self._tensor(array))))

    def export(self, path, **options):
        """Writes the deployable model with the weights as they are now."""
        sink = _Sink(path=os.fsencode(path))
        self._context.check(_library.qcc_export_session(self._session, self._text(options), ctypes.byref(sink)))

    def save(self, path):
        """Writes a checkpoint."""
        self._context.check(_library.qcc_save(self._session, ctypes.byref(_Sink(path=os.fsencode(path)))))

    def load(self, path):
        """Goes on where a checkpoint was."""
        self._context.check(_library.qcc_load(self._session, ctypes.byref(_Source(path=os.fsencode(path)))))

    def close(self):
        """Gives everything back; what was bound may go."""
        self._context.close()
        self._bound, self._coming, self._next = {}, {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    try:
        sys.stdout.write(command(*sys.argv[1:]))
    except Error as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.status)
