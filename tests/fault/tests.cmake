# What fails on purpose: memory, at each request in turn.
add_executable(fault_memory fault/memory.c)
target_link_libraries(fault_memory PRIVATE test_support)
add_test(NAME fault/memory COMMAND fault_memory ${CMAKE_CURRENT_SOURCE_DIR}/golden)
set_tests_properties(fault/memory PROPERTIES LABELS fast)
