# Every file here is one libFuzzer target; they are built by the preset `fuzz`, whose floors count coverage.
#     build/fuzz/tests/fuzz_onnx_reader CORPUS...
if(QCC_SANITIZE MATCHES fuzzer)
    file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
    foreach(source IN LISTS fuzzers)
        get_filename_component(name ${source} NAME_WE)
        add_executable(fuzz_${name} ${source})
        target_link_libraries(fuzz_${name} PRIVATE ${floors} m)
        target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        add_test(NAME fuzz/${name} COMMAND fuzz_${name} -runs=20000 -max_len=4096 -timeout=5
                 WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
        set_tests_properties(fuzz/${name} PROPERTIES LABELS slow)
    endforeach()
endif()
