"""The same in other opsets."""
from ort.net import CASES, case


def at(opset, build):
    def newer(n):
        n.opset = opset
        build(n)
    newer.__name__ = "%s_opset_%d" % (build.__name__, opset)
    case()(newer)


for newest in (13, 21, 23):
    for older in ("max_pool-u8", "max_pool_before_sigmoid-u8", "max_pool_behind_sigmoid-u8", "conv_bias-u8-tensor",
                  "add_two-u8", "gemm_bias-u8-tensor", "reshape-u8", "reshape_before_sigmoid-u8",
                  "reshape_behind_sigmoid-u8"):
        at(newest, CASES[older][0])
