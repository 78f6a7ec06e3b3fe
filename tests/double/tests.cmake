# Sessions on an engine that is not `reference` (tests/double/engine_double.h): failing calls, late ends, and the programs that
# test sessions, once more.
add_library(test_double STATIC double/engine_double.c)
target_link_libraries(test_double PUBLIC test_support ${floors} m)
add_executable(test_double_failures double/failures.c)
target_link_libraries(test_double_failures PRIVATE test_double PkgConfig::CMOCKA)
add_test(NAME double/failures COMMAND test_double_failures WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
set_tests_properties(double/failures PROPERTIES LABELS fast)
foreach(program unit/runtime/session unit/runtime/session_shadow unit/runtime/scaler unit/runtime/step_graph
                embed/session embed/session_leaves embed/scaling embed/weights)
    string(REGEX REPLACE "/.*/|/" "_" name ${program})
    add_executable(test_double_${name} ${program}.c double/instead.c)
    target_link_libraries(test_double_${name} PRIVATE test_double PkgConfig::CMOCKA Threads::Threads)
    target_link_options(test_double_${name} PRIVATE -Wl,--wrap=engine_find)
    target_include_directories(test_double_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(test_double_${name} PRIVATE QCC_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME double/${name} COMMAND test_double_${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(double/${name} PROPERTIES LABELS fast)
endforeach()
