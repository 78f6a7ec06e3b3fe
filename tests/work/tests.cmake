# Nothing is quadratic: instructions of command lines, as valgrind counts them; one test a shape, for they take seconds each.
add_executable(test_work work/files.c work/run.c work/shapes.c)
target_link_libraries(test_work PRIVATE PkgConfig::CMOCKA ZLIB::ZLIB)
target_include_directories(test_work PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)
if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE AND CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(shape chain prefix beside outputs inputs passed dimensions weights merged copies unread constants operands uses regions captures
                  functions infos properties opsets unknown attributes layers wide small)
        add_test(NAME work/${shape} COMMAND test_work $<TARGET_FILE:qcc> ${shape})
        if(shape MATCHES "^(outputs|small)$")
            set(labels slow)
        else()
            set(labels "slow;long") # half a minute each
        endif()
        set_tests_properties(work/${shape} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77)
    endforeach()
endif()
