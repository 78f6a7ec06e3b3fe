"""usage: module.py FOLDER-OF-QCC.PY MODEL.onnx : the module of Python against the command's own answers and numpy."""
import os
import sys
import tempfile
import warnings

import numpy

sys.path.insert(0, sys.argv[1])
import qcc  # noqa: E402

model = sys.argv[2]
folder = tempfile.mkdtemp()
os.chdir(folder)
rng = numpy.random.default_rng(1)
x = rng.standard_normal((64, 4)).astype(numpy.float32)
y = (x[:, 0] > 0).astype(numpy.int64)
wrong = []


def holds(what, truth):
    if not truth:
        wrong.append(what)


# Verbs: what a run answers, what it writes, whole data sets.
events = qcc.train(model, {"x": x}, y, loss="cross_entropy:y,axis=1", epochs=20, batch=16, lr=5e-2, o="trained.onnx", seed=3)
losses = [e["train_loss"] for e in events if e["event"] == "epoch"]
holds("twenty epochs", len(losses) == 20 and losses[-1] < losses[0])
holds("an end", [e["status"] for e in events if e["event"] == "end"] == [0])
logits = qcc.predict("trained.onnx", x)
holds("as many rows as samples", logits.shape == (64, 2) and logits.dtype == numpy.float32)
told = qcc.evaluate("trained.onnx", {"x": x}, y, loss="cross_entropy:y,axis=1", metric=["accuracy", "f1"])
holds("numpy's accuracy", abs(told["accuracy"] - (logits.argmax(1) == y).mean()) < 1e-6)
shifted = logits - logits.max(1, keepdims=True)
nll = (numpy.log(numpy.exp(shifted).sum(1)) - shifted[numpy.arange(64), y]).mean()
holds("numpy's loss", abs(told["eval_loss"] - nll) < 1e-5)
holds("the command's text", "input" in qcc.command("explain", model))
holds("an export", any(e["event"] == "wrote" for e in qcc.export(model, "plain.onnx")))

# Words: an error is one of Python's, with the way on; a warning is one of Python's.
try:
    qcc.train(model, {"z": x}, y)
    wrong.append("an input that is not there")
except qcc.Error as error:
    holds("usage", error.status == 2 and "no input is called z" in str(error))
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    qcc.command(model, "--loss", "cross_entropy:y,axis=1", "--loss-scale", "static:8", "-o", "s.onnx")
    holds("a warning", any(issubclass(w.category, qcc.Warning) for w in heard))

# A session: one step of plain gradient descent by numpy, values in and out.
with qcc.Session(model, batch=16, loss="mse:y", optimizer="sgd:lr=0.1") as s:
    names = [n for n, _ in s.parameters()]
    before = {n: s[n] for n in names}
    target = numpy.zeros((16, 2))
    s.bind(x=x[:16], target=target)
    first = s.run()
    holds("a step", first.step == 1 and first.applied == 1 and numpy.isfinite(first.loss))
    s2 = {n: s[n] for n in names}
    s.run(qcc.FORWARD | qcc.BACKWARD)
    gradients = {n: s["grad." + n] for n in names}
    s.run(qcc.UPDATE)
    holds("gradient descent", all(numpy.allclose(s[n], s2[n] - 0.1 * gradients[n], atol=1e-6) for n in names))
    try:
        s[names[0] + "x"]
        wrong.append("a name that is not there")
    except qcc.Error as error:
        holds("the nearest name", error.status == 2 and "try: " + names[0] in str(error))
    s.save("s.safetensors")
    kept = {n: s[n] for n in names}
    s[names[0]] = numpy.zeros_like(before[names[0]])
    holds("a value that was put", not s[names[0]].any())
    s.load("s.safetensors")
    holds("a checkpoint", all((s[n] == kept[n]).all() for n in names))
    s.run(qcc.EVAL)
    s.export("session.onnx")
    holds("what is deployed", numpy.array_equal(qcc.predict("session.onnx", x[:16]), s["y"]))
    whole = s["y"]
    s.bind(x=x[:3], target=target[:3]).run(qcc.EVAL)
    holds("three of sixteen", numpy.array_equal(whole[:3], s["y"]))
    try:
        s.run()
        wrong.append("a step of three rows for sixteen")
    except qcc.Error as error:
        holds("misfit", error.status == 2 and "f32[16," in str(error))

# Batches that are given ahead, of arrays that nobody else holds: the losses of a loop that binds each in time.
losses = []
for ahead in (False, True):
    with qcc.Session(model, batch=4, loss="mse:y", optimizer="sgd:lr=0.1") as s:
        s.bind(x=x[:4].copy(), target=numpy.zeros((4, 2)))
        losses.append([])
        for i in range(4):
            if ahead and i < 3:
                s.bind_next(x=numpy.full((4, x.shape[1]), 99.0)).bind_next(x=x[4 * i + 4 : 4 * i + 8].copy())
            elif not ahead:
                s.bind(x=x[4 * i : 4 * i + 4].copy())
            losses[-1].append(s.run().loss)
            s.bind(x=x[:2].copy(), target=numpy.zeros((2, 2))).run(qcc.EVAL)
            s.bind(target=numpy.zeros((4, 2)))
holds("batches ahead", losses[0] == losses[1] and len(set(losses[0])) == 4)
# Steps that are told of one by one later.
with qcc.Session(model, batch=4, loss="mse:y", optimizer="sgd:lr=0.1") as s:
    told = []
    for i in range(4):
        s.bind(x=x[4 * i : 4 * i + 4].copy(), target=numpy.zeros((4, 2)))
        told.append(s.run(qcc.STEP | qcc.LATER))
    told.append(s.wait())
holds("told later", [r.step for r in told] == [0, 1, 2, 3, 4] and [r.loss for r in told[1:]] == losses[0])
try:
    qcc.Session("nothing.onnx")
    wrong.append("a model that is not there")
except qcc.Error as error:
    holds("io", error.status == 5)
for what in wrong:
    print("differs:", what)
sys.exit(1 if wrong else 0)
