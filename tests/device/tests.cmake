# tests/device/steps.c: stored models on a device beside the reference.  tools/gpu_check runs it with --device cuda where there
# is a GPU; here `cpu` stands in for it, whose bits are those of the reference.
add_executable(device_steps device/steps.c)
target_link_libraries(device_steps PRIVATE qcc_shared m)
file(GLOB device_models ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/*-training-16-static.onnx)
add_test(NAME device/steps COMMAND device_steps --device cpu --same --only f32 ${device_models})
add_test(NAME device/recipes COMMAND device_steps --device cpu ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/mlp-training-16-static.onnx
         ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/cnn-training-16-static.onnx)
add_test(NAME device/shaken COMMAND device_steps --device cpu --shake --only f32 ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/mlp-training-16-static.onnx)
set_tests_properties(device/shaken PROPERTIES PASS_REGULAR_EXPRESSION "TWO RUNS DIFFER.*0 same, 0 near, 1 APART" LABELS fast)
set_tests_properties(device/steps device/recipes PROPERTIES LABELS fast)
if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    add_test(NAME device/check COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/device/check ${CMAKE_BINARY_DIR})
    set_tests_properties(device/check PROPERTIES LABELS slow)
endif()
