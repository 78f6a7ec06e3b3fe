"""Matrix products, with biases of all kinds."""
from onnx import TensorProto, helper

from ort.net import TYPES, case, gemm, matmul, rows


@case("per")
def gemm_bias(n):
    n.out(n.qdq(gemm(n, rows(n))))


@case("per")
def gemm_bias_float_out(n):
    n.out(gemm(n, rows(n)))


@case()
def gemm_not_turned(n):
    n.out(n.qdq(gemm(n, rows(n), trans=0)))


@case("per")
def gemm_no_bias(n):
    n.out(n.qdq(gemm(n, rows(n), "none")))


@case("per")
def gemm_float_bias(n):
    n.out(n.qdq(gemm(n, rows(n), "float")))


@case("per")
def gemm_float_bias_float_out(n):
    n.out(gemm(n, rows(n), "float"))


@case()
def gemm_float_bias_float_out_not_turned(n):
    n.out(gemm(n, rows(n), "float", trans=0))


@case()
def gemm_relu(n):
    n.out(n.qrelu(n.op("Relu", gemm(n, rows(n)))))


@case()
def gemm_relu_loose(n):
    n.out(n.qdq(n.op("Relu", gemm(n, rows(n)))))


@case()
def gemm_float_out_relu(n):
    n.out(n.op("Relu", gemm(n, rows(n))))


@case()
def gemm_alpha(n):
    n.out(n.qdq(gemm(n, rows(n), alpha=0.5)))


@case()
def gemm_beta(n):
    n.out(n.qdq(gemm(n, rows(n), beta=0.5)))


@case("per")
def gemm_bias_of_other_scale(n):
    x, w = rows(n), n.w((8, 16))
    n.out(n.qdq(n.op("Gemm", x, w, n.bias(8, off=1.5), transB=1)))


@case("per")
def matmul_q(n):
    n.out(n.qdq(matmul(n, rows(n))))


@case("per")
def matmul_float_out(n):
    n.out(matmul(n, rows(n)))


@case()
def matmul_read_twice_as_float(n):
    y = matmul(n, rows(n))
    n.out(n.qdq(y), n.op("Exp", y))


@case("per")
def matmul_add_float_bias(n):
    n.out(n.qdq(n.op("Add", matmul(n, rows(n)), n.fw(8))))


@case("per")
def matmul_add_float_bias_float_out(n):
    n.out(n.op("Add", matmul(n, rows(n)), n.fw(8)))


@case()
def matmul_three_dimensions_add_float_bias(n):
    x = n.qdq(n.input(2, 4, 16))
    n.out(n.qdq(n.op("Add", matmul(n, x), n.fw(8))))


@case()
def matmul_three_dimensions_add_float_bias_float_out(n):
    x = n.qdq(n.input(2, 4, 16))
    n.out(n.op("Add", matmul(n, x), n.fw(8)))


@case()
def matmul_add_quantized_bias(n):
    """A pair between product and sum, and a bias of int32 codes."""
    x = n.qdq(n.input(2, 4, 16))
    y = n.qdq(matmul(n, x))
    n.out(n.qdq(n.op("Add", y, n.bias(8))))


@case("per")
def matmul_add_codes_bias(n):
    """A bias of int32 codes without a pair between product and sum."""
    n.out(n.qdq(n.op("Add", matmul(n, rows(n)), n.bias(8))))


@case("per")
def matmul_add_codes_bias_float_out(n):
    n.out(n.op("Add", matmul(n, rows(n)), n.bias(8)))


@case()
def matmul_three_dimensions_add_codes_bias(n):
    n.out(n.qdq(n.op("Add", matmul(n, n.qdq(n.input(2, 4, 16))), n.bias(8))))


@case()
def matmul_three_dimensions_add_codes_bias_float_out(n):
    n.out(n.op("Add", matmul(n, n.qdq(n.input(2, 4, 16))), n.bias(8)))


@case()
def matmul_three_dimensions(n):
    n.out(n.qdq(matmul(n, n.qdq(n.input(2, 4, 16)))))


@case()
def matmul_three_dimensions_float_out(n):
    n.out(matmul(n, n.qdq(n.input(2, 4, 16))))


@case()
def matmul_float_bias_first(n):
    """The bias is operand 0 of the sum."""
    n.out(n.qdq(n.op("Add", n.fw(8), matmul(n, rows(n)))))


@case()
def matmul_pair_add_float_bias(n):
    """A pair between product and sum, a float bias."""
    n.out(n.qdq(n.op("Add", n.qdq(matmul(n, rows(n))), n.fw(8))))


@case()
def matmul_open_batch_add_float_bias(n):
    """Nobody knows how many rows there are."""
    n.inputs.append(helper.make_tensor_value_info("x0", TensorProto.FLOAT, ("batch", 4, 16)))
    n.out(n.qdq(n.op("Add", matmul(n, n.qdq("x0")), n.fw(8))))


@case()
def matmul_open_batch_add_float_bias_float_out(n):
    n.inputs.append(helper.make_tensor_value_info("x0", TensorProto.FLOAT, ("batch", 4, 16)))
    n.out(n.op("Add", matmul(n, n.qdq("x0")), n.fw(8)))


@case()
def matmul_add_bias_of_act(n):
    """The bias as codes of the activations' type."""
    x = n.qdq(n.input(2, 4, 16))
    y = n.qdq(matmul(n, x))
    b = n.op("DequantizeLinear", n.codes((8,), TYPES[n.act]), n.const(0.0625), n.zero_of(None, n.act))
    n.out(n.qdq(n.op("Add", y, b)))


@case()
def matmul_relu(n):
    n.out(n.qrelu(n.op("Relu", matmul(n, rows(n)))))


@case()
def matmul_of_activations(n):
    a, b = n.qdq(n.input(2, 4, 16)), n.qdq(n.input(2, 16, 8))
    n.out(n.qdq(n.op("MatMul", a, b)))


@case()
def matmul_of_activations_float_out(n):
    a, b = n.qdq(n.input(2, 4, 16)), n.qdq(n.input(2, 16, 8))
    n.out(n.op("MatMul", a, b))


@case()
def matmul_of_activations_turned(n):
    """Q K': the second operand goes through a Transpose between its DQ and the product."""
    a, b = n.qdq(n.input(2, 4, 16)), n.qdq(n.input(2, 8, 16))
    n.out(n.qdq(n.op("MatMul", a, n.op("Transpose", b, perm=[0, 2, 1]))))


@case("per")
def matmul_weight_only(n):
    n.out(n.op("MatMul", n.input(4, 32), n.w((32, 8), 1)))


@case()
def matmul_types_differ(n):
    other = "s8" if n.act == "u8" else "u8"
    n.out(n.qdq(matmul(n, rows(n)), act=other))


@case()
def gemm_float_weight(n):
    n.out(n.qdq(n.op("Gemm", rows(n), n.fw(8, 16), n.fw(8), transB=1)))


@case()
def matmul_float_weight(n):
    n.out(n.qdq(n.op("MatMul", rows(n), n.fw(16, 8))))


@case()
def gemm_u8_weight(n):
    n.weight = "u8"
    n.out(n.qdq(gemm(n, rows(n))))


@case()
def matmul_u8_weight(n):
    n.weight = "u8"
    n.out(n.qdq(matmul(n, rows(n))))


@case()
def gemm_branch(n):
    """One pair, two readers."""
    x = rows(n)
    n.out(n.qdq(gemm(n, x)), n.qdq(gemm(n, x)))


@case()
def gemm_branch_float_out(n):
    x = rows(n)
    n.out(gemm(n, x), gemm(n, x))


@case()
def matmul_branch(n):
    x = rows(n)
    n.out(n.qdq(matmul(n, x)), n.qdq(matmul(n, x)))


@case()
def matmul_branch_float_out(n):
    x = rows(n)
    n.out(matmul(n, x), matmul(n, x))


@case()
def gemm_relu_read(n):
    """A Relu that does something, and one reads."""
    n.out(n.op("Exp", n.op("Relu", gemm(n, rows(n)))))


@case()
def matmul_relu_read(n):
    n.out(n.op("Exp", n.op("Relu", matmul(n, rows(n)))))


@case()
def matmul_weight_only_equal_scales(n):
    x = n.op("Exp", n.op("MatMul", n.input(4, 16), n.w((16, 16), 1)))
    n.out(n.op("MatMul", x, n.w((16, 16), 1)))
