# tests/source: C that qcc makes of models, compiled and compared with what qcc computes.
add_test(NAME source/small COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/source/run $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR}
         ${CMAKE_C_COMPILER})
set_tests_properties(source/small PROPERTIES LABELS slow)
add_test(NAME source/all COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/source/run $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR}
         ${CMAKE_C_COMPILER} all)
set_tests_properties(source/all PROPERTIES LABELS "slow;long" TIMEOUT 1800)
