"""Steps of the stored models under onnx's own checker: the file, the step alone, and model and step as one graph."""
import glob
import sys

import onnx

folder = sys.argv[1]


def combined(m):
    """What ONNX means by a training graph: the model's nodes, and behind them those of the algorithm."""
    both = onnx.ModelProto()
    both.CopyFrom(m)
    del both.training_info[:]
    algorithm = m.training_info[0].algorithm
    for field in ("node", "initializer", "sparse_initializer", "input", "output", "value_info"):
        getattr(both.graph, field).extend(getattr(algorithm, field))
    return both


def bindings_hold(m):
    """Every state that is updated is an initializer, and every next value is made."""
    info = m.training_info[0]
    states = {i.name for g in (m.graph, info.algorithm) for i in g.initializer}
    states |= {i.values.name for i in info.algorithm.sparse_initializer}
    states |= {o for n in m.graph.node for o in n.output}  # a Constant, or an alias of an initializer
    made = {o for n in info.algorithm.node for o in n.output}
    made |= {i.name for i in info.algorithm.input} | {i.name for i in m.graph.input} | states
    for b in info.update_binding:
        assert b.key in states, b.key
        assert b.value in made, b.value
    return len(info.update_binding)


steps = sorted(glob.glob(folder + "/*.step.onnx"))
assert len(steps) > 60, len(steps)
updates = 0
for path in steps:
    m = onnx.load(path)
    onnx.checker.check_model(path)
    assert len(m.training_info) == 1
    both = combined(m)
    onnx.checker.check_model(both)
    updates += bindings_hold(m)
for path in sorted(glob.glob(folder + "/*.flat.onnx")):
    onnx.checker.check_model(path)
assert updates > len(steps)
print(len(steps), "steps,", updates, "updates")
