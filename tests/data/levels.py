"""Checks ops/scalar/levels.h against torchao: the levels, and which of them a number gets.

    python tests/data/levels.py            says what differs; needs torchao (0.18 made what is stored)
"""
import os
import re
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    from torchao.optim import quant_utils
except ImportError:
    print("skipped: levels of torchao; pip install torchao runs it")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = open(os.path.join(HERE, "..", "..", "ops", "scalar", "levels.h")).read()
BODY = TEXT[TEXT.index("levels_f32[4 * LEVELS_MANY]"):]
KINDS = {
    "dynamic8": quant_utils.create_dynamic_map(True),
    "unsigned8": quant_utils.create_dynamic_map(False),
    "dynamic4": quant_utils.create_dynamic_map(True, 3, 4),
    "linear4": torch.linspace(0, 1, 17)[1:].tolist(),
}


def stored(kind):
    part = BODY[BODY.index("/* %s */" % kind):][len(kind) + 6:]
    part = part[:re.search(r"/\*|\}|LEVELS_NONE", part).start()]
    return torch.tensor([float(x) for x in re.findall(r"-?\d[\d.e+-]*(?=f)", part)])


def nearest(x, levels):
    """nearest_level_f32 of levels.h, one comparison for each level."""
    code = (x[:, None] >= levels[None, :]).sum(1).sub(1).clip(0)
    up = (code + 1).clip(max=len(levels) - 1)
    return torch.where(x - levels[code] >= (levels[up] - levels[code]) * 0.5, up, code)


bad = 0
for kind, values in KINDS.items():
    levels, theirs = stored(kind), torch.tensor(values)
    x = torch.cat([torch.linspace(-1, 1, 100001), levels, (levels[1:] + levels[:-1]) / 2])
    code = quant_utils.quantize_8bit_with_qmap if len(values) == 256 else quant_utils.quantize_4bit_with_qmap
    same = torch.equal(levels, theirs), torch.equal(nearest(x, levels), code(x, theirs).long())
    print("%-10s %d levels %s, %d numbers %s" % (kind, len(levels), "equal" if same[0] else "DIFFER", len(x),
                                                 "have the same" if same[1] else "DIFFER"))
    bad += not all(same)
sys.exit(bad)
