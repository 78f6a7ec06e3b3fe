# Every verb over every kind of value.
add_executable(kinds kinds/host.c kinds/kind.c kinds/run.c)
target_link_libraries(kinds PRIVATE qcc_static PkgConfig::CMOCKA)
target_include_directories(kinds PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/tests)
add_test(NAME kinds/few COMMAND kinds)
set_tests_properties(kinds/few PROPERTIES LABELS fast)
add_test(NAME kinds/all COMMAND kinds --all)
set_tests_properties(kinds/all PROPERTIES LABELS slow)
