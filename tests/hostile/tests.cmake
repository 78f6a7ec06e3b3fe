# The hostile corpus through the library's own door alone, and the cases of it that take long.
file(GLOB hostile CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(hostile_corpus ${hostile} ${CMAKE_CURRENT_SOURCE_DIR}/support/pace.c)
target_link_libraries(hostile_corpus PRIVATE qcc_static PkgConfig::CMOCKA)
target_include_directories(hostile_corpus PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/tests)
add_test(NAME hostile/corpus COMMAND hostile_corpus)
set_tests_properties(hostile/corpus PROPERTIES LABELS fast)
add_test(NAME hostile/large COMMAND hostile_corpus --large)
set_tests_properties(hostile/large PROPERTIES LABELS slow)
