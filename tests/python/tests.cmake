# What we write, read by Python's packages: numpy, zipfile, safetensors.  Skipped where no interpreter has them
# (python/oracle looks for one).
add_executable(test_python_files python/files.c)
target_link_libraries(test_python_files PRIVATE test_support PkgConfig::CMOCKA)
add_test(NAME python/files COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/run $<TARGET_FILE:test_python_files>
         ${CMAKE_CURRENT_SOURCE_DIR}/python/files.py "numpy, safetensors.numpy")
set_tests_properties(python/files PROPERTIES LABELS fast SKIP_RETURN_CODE 77)

# Steps, by onnx's checker.
add_test(NAME python/steps COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/run $<TARGET_FILE:test_table_step_files>
         ${CMAKE_CURRENT_SOURCE_DIR}/python/steps.py onnx.checker)
set_tests_properties(python/steps PROPERTIES LABELS fast SKIP_RETURN_CODE 77)

# A sample of every op as a file, by the checker with shapes and types inferred.
add_test(NAME python/samples COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/run $<TARGET_FILE:test_table_onnx_trip>
         ${CMAKE_CURRENT_SOURCE_DIR}/python/samples.py onnx.checker)
set_tests_properties(python/samples PROPERTIES LABELS fast SKIP_RETURN_CODE 77)

# Types below 16 bits, by onnx's reference implementation.
add_test(NAME python/narrow_types
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'onnx.checker, onnx.reference, ml_dtypes' ${CMAKE_CURRENT_SOURCE_DIR}/python/narrow_types.py $<TARGET_FILE:qcc> $f")
set_tests_properties(python/narrow_types PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Casts to formats of few bits, every pattern, by ml_dtypes.
add_test(NAME python/few_bits
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, ml_dtypes' ${CMAKE_CURRENT_SOURCE_DIR}/python/few_bits.py $<TARGET_FILE:qcc> $f")
set_tests_properties(python/few_bits PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Codes that are floats of few bits, by onnx's reference implementation and ONNX Runtime.
add_test(NAME python/float_codes
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'onnx.checker, onnx.reference, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/float_codes.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/float_codes PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# What ONNX Runtime fuses, by itself: the rules of docs/quantization.md rest on it.
add_test(NAME python/ort_fusions
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle "onnxruntime.quantization, sympy"
                 ${CMAKE_CURRENT_SOURCE_DIR}/data/ort_fusions.py --level extended
                 --check ${CMAKE_CURRENT_SOURCE_DIR}/data/ort_fusions.txt)
set_tests_properties(python/ort_fusions PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# The module of Python; an interpreter does not load a library with sanitizers.
if(NOT QCC_SANITIZE)
    add_test(NAME python/module
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle numpy ${CMAKE_CURRENT_SOURCE_DIR}/python/module.py
                     ${CMAKE_SOURCE_DIR}/python ${CMAKE_CURRENT_SOURCE_DIR}/command/models/mlp.onnx)
    set_tests_properties(python/module PROPERTIES LABELS fast SKIP_RETURN_CODE 77
                         ENVIRONMENT "QCC_LIBRARY=$<TARGET_FILE:qcc_shared>;PYTHONDONTWRITEBYTECODE=1")
endif()

# Quantizers of PyTorch and Brevitas, once more.
add_test(NAME python/quantizers
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle torch ${CMAKE_CURRENT_SOURCE_DIR}/data/quantizers.py
                 ${CMAKE_CURRENT_SOURCE_DIR}/data/quantizers.h)
set_tests_properties(python/quantizers PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Formats of few bits and BitNet, of torch and torchao, once more.
add_test(NAME python/formats
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle "torch, torchao.prototype.mx_formats.mx_tensor"
                 ${CMAKE_CURRENT_SOURCE_DIR}/data/formats.py ${CMAKE_CURRENT_SOURCE_DIR}/data/formats.h)
set_tests_properties(python/formats PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Numbers and blocks of few bits, of every number of 16 bits, by ml_dtypes; MX also by torchao, where the same Python has it.
add_test(NAME python/blocks
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle "numpy, ml_dtypes" ${CMAKE_CURRENT_SOURCE_DIR}/data/blocks.py
                 ${CMAKE_CURRENT_SOURCE_DIR}/data/blocks.h)
set_tests_properties(python/blocks PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Training in floats beside PyTorch's, loss by loss, with the networks of bench/lowbit.
add_test(NAME python/beside_torch
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && OMP_NUM_THREADS=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, torch, torchao.optim' ${CMAKE_CURRENT_SOURCE_DIR}/python/beside_torch.py $<TARGET_FILE:qcc> $<TARGET_FILE:glyphs> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/beside_torch PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Architectures of transformers as PyTorch exports them: forward, back, and on codes.
add_test(NAME python/architectures
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && OMP_NUM_THREADS=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnxruntime, onnxscript, torch, transformers' ${CMAKE_CURRENT_SOURCE_DIR}/python/architectures.py $<TARGET_FILE:qcc> $f")
set_tests_properties(python/architectures PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# What docs/migration.md says of scales and codes of other tools, by those that the interpreter has.
add_test(NAME python/migration
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx' ${CMAKE_CURRENT_SOURCE_DIR}/python/migration.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/migration PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Models that were trained on codes, by ONNX Runtime: the same bits.
add_test(NAME python/deployed
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/deployed.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/deployed PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Certificates of exported models: no code differs, and ONNX Runtime fuses what is predicted.
add_test(NAME python/certified
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/certified.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/certified PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
# Weights of groups in four bits, by ONNX Runtime: what is packed, what it rounds besides, and codes that stay.
add_test(NAME python/weight_only
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/weight_only.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/weight_only PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
# BitNet, by ONNX Runtime: sums of codes here, products of numbers there.
add_test(NAME python/bitnet
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/bitnet.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/bitnet PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
# Models that arrive with codes, by ONNX Runtime: trained through their pairs, with the scales of the file.
add_test(NAME python/arrived
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime.quantization' ${CMAKE_CURRENT_SOURCE_DIR}/python/arrived.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/arrived PROPERTIES LABELS slow SKIP_RETURN_CODE 77)


# Networks that Brevitas exports in QONNX's operators compute here what they compute there.
add_test(NAME python/qonnx
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'torch, brevitas.nn, onnxoptimizer' ${CMAKE_CURRENT_SOURCE_DIR}/python/qonnx.py $<TARGET_FILE:qcc> $f")
set_tests_properties(python/qonnx PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Files that we write for QONNX, by onnx's reference implementation with QONNX's formulas: every code, and the results.
add_test(NAME python/qonnx_files
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx' ${CMAKE_CURRENT_SOURCE_DIR}/python/qonnx_files.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/qonnx_files PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Every code of whole networks over forty batches, by ONNX Runtime.
add_test(NAME python/end_to_end
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/end_to_end.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/end_to_end PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# Models of integers alone: no float between their ends, and what ONNX Runtime and onnx's reference implementation compute of them.
add_test(NAME python/integers
         COMMAND sh -c "f=$(mktemp -d) && trap 'rm -rf $f' EXIT && PYTHONDONTWRITEBYTECODE=1 ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle 'numpy, onnx, onnxruntime' ${CMAKE_CURRENT_SOURCE_DIR}/python/integers.py $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR} $f")
set_tests_properties(python/integers PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
