"""The networks of bench/lowbit in floats, here and in PyTorch, from the same weights over the same batches: each loss of twenty
steps is the same but for the order of sums; and no recipe of torchao's leaves the loss of floats to the last bit, for then it
was not computed: its int8 products are none without module_swap.

usage: beside_torch.py QCC GLYPHS SOURCE FOLDER
"""
import importlib.machinery
import importlib.util
import math
import pathlib
import sys
import types

qcc, glyphs, source, folder = sys.argv[1:5]
loader = importlib.machinery.SourceFileLoader("lowbit", source + "/bench/lowbit")
lowbit = importlib.util.module_from_spec(importlib.util.spec_from_loader("lowbit", loader))
sys.dont_write_bytecode = True
loader.exec_module(lowbit)

lowbit.HELD_OUT = 32
if lowbit.agree(["gpt", "vit"], types.SimpleNamespace(seeds=1, steps=20, qcc=qcc, glyphs=glyphs, folder=pathlib.Path(folder))):
    sys.exit("losses part")

values, data = lowbit.draw("gpt", 0), lowbit.batches("gpt", 0, 4, glyphs, pathlib.Path(folder))
losses = {name: lowbit.theirs("gpt", values, data, 0, 4, change, optimizer)[0][-1] for name, _, change, optimizer in lowbit.RECIPES}
floats = losses.pop("f32")
for name, loss in losses.items():
    if not math.isfinite(loss) or loss == floats:
        sys.exit("torchao's %s ends at %.8f, floats at %.8f" % (name, loss, floats))
print("%d recipes of torchao, none of them in floats" % len(losses))
