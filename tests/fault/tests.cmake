# What fails on purpose: memory, at each request in turn.
add_executable(fault_memory fault/memory.c)
target_link_libraries(fault_memory PRIVATE test_support)
add_test(NAME fault/memory COMMAND fault_memory ${CMAKE_CURRENT_SOURCE_DIR}/golden)
set_tests_properties(fault/memory PROPERTIES LABELS fast)
# The same by the host's own allocator, for models from files.
add_executable(fault_models fault/models.c)
target_link_libraries(fault_models PRIVATE qcc_static)
target_include_directories(fault_models PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_test(NAME fault/models COMMAND fault_models ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/onnx_import)
set_tests_properties(fault/models PROPERTIES LABELS fast)
# A step that is compiled twice, the second time in silence.
add_executable(fault_amp fault/amp.c)
target_link_libraries(fault_amp PRIVATE qcc_static)
target_include_directories(fault_amp PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_test(NAME fault/amp COMMAND fault_amp ${CMAKE_CURRENT_SOURCE_DIR}/data/torch/mlp.onnx)
set_tests_properties(fault/amp PROPERTIES LABELS fast)
