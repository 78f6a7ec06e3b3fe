# The library from outside: programs over libqcc.so and qcc.h, its symbols, its header in C and C++.
foreach(name library around bytes devices memory nothing quantized stored gathered micro_batches session session_leaves values conditions threads scaling stops weights quiet batches next later)
    add_executable(test_embed_${name} embed/${name}.c)
    target_link_libraries(test_embed_${name} PRIVATE qcc_shared PkgConfig::CMOCKA Threads::Threads ${CMAKE_DL_LIBS} m)
    target_include_directories(test_embed_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(test_embed_${name} PRIVATE QCC_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME embed/${name} COMMAND test_embed_${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(embed/${name} PROPERTIES LABELS fast)
endforeach()
target_sources(test_embed_quiet PRIVATE support/system_calls.c)
# Every verb, in places of several kinds.
add_executable(test_embed_lines embed/lines.c train/command.c)
target_link_libraries(test_embed_lines PRIVATE qcc_shared Threads::Threads)
target_include_directories(test_embed_lines PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
add_test(NAME embed/places COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/embed/places $<TARGET_FILE:test_embed_lines>
                                   ${CMAKE_CURRENT_SOURCE_DIR}/command/models ${CMAKE_SOURCE_DIR}/examples/models
         WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
set_tests_properties(embed/places PROPERTIES LABELS fast)
add_executable(test_embed_unload embed/unload.c)
target_include_directories(test_embed_unload PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(test_embed_unload PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(test_embed_unload qcc_shared)
add_test(NAME embed/unload COMMAND test_embed_unload $<TARGET_FILE:qcc_shared>
                                   ${CMAKE_SOURCE_DIR}/tests/command/models/mlp.onnx)
set_tests_properties(embed/unload PROPERTIES LABELS fast)
if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    add_test(NAME embed/symbols COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/embed/symbols $<TARGET_FILE:qcc_shared>
             ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/include/qcc/qcc.h ${CMAKE_SOURCE_DIR}/docs/qcc.3)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        add_test(NAME embed/hardened COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/embed/hardened ${CMAKE_C_COMPILER}
                                             $<TARGET_FILE:qcc_shared> $<TARGET_FILE:qcc>)
        set_tests_properties(embed/hardened PROPERTIES LABELS fast)
    endif()
    add_test(NAME embed/install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/embed/install ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}
                                        ${CMAKE_C_COMPILER})
    set_tests_properties(embed/symbols embed/install PROPERTIES LABELS fast)
endif()

# The examples, in C, C++ and Python, where there is a compiler or interpreter for them.
file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS examples)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE qcc_shared m)
endforeach()
set(regress ${CMAKE_SOURCE_DIR}/examples/models/regress.qir)
add_test(NAME embed/example_run COMMAND example_run ${CMAKE_SOURCE_DIR}/tests/command/models/mlp.onnx)
add_test(NAME embed/example_train COMMAND example_train ${regress} ${CMAKE_CURRENT_BINARY_DIR}/regress.onnx)
add_test(NAME embed/example_gan COMMAND example_gan)
set_tests_properties(embed/example_gan PROPERTIES PASS_REGULAR_EXPRESSION "^learnt: " LABELS fast)
set_tests_properties(embed/example_run PROPERTIES PASS_REGULAR_EXPRESSION "y f32\\[1,2\\] -1\\.71875 0\\.125" LABELS fast)
set_tests_properties(embed/example_train PROPERTIES PASS_REGULAR_EXPRESSION "step 2000  loss 0\\.000" LABELS fast)
find_program(CXX NAMES c++ g++ clang++)
if(CXX AND NOT QCC_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    set(reinforce ${CMAKE_CURRENT_BINARY_DIR}/example_reinforce)
    add_custom_command(OUTPUT ${reinforce}
                       COMMAND ${CXX} -std=c++11 -O1 -Wall -Wextra -pedantic -Wno-comment -Werror -I${CMAKE_SOURCE_DIR}/include
                               ${CMAKE_SOURCE_DIR}/examples/reinforce.cpp $<TARGET_FILE:qcc_shared>
                               -Wl,-rpath,$<TARGET_FILE_DIR:qcc_shared> -o ${reinforce}
                       DEPENDS ${CMAKE_SOURCE_DIR}/examples/reinforce.cpp qcc_shared VERBATIM)
    add_custom_target(reinforce_built ALL DEPENDS ${reinforce})
    add_test(NAME embed/example_reinforce COMMAND ${reinforce})
    set_tests_properties(embed/example_reinforce PROPERTIES LABELS fast)
endif()
find_program(PYTHON3 python3)
if(PYTHON3 AND NOT QCC_SANITIZE)
    add_test(NAME embed/example_python COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/examples/train.py ${regress}
                                               ${CMAKE_CURRENT_BINARY_DIR}/regress_python.onnx)
    set_tests_properties(embed/example_python PROPERTIES ENVIRONMENT "QCC_LIBRARY=$<TARGET_FILE:qcc_shared>" LABELS fast)
endif()

# The header alone, as C99 and C11 would see it and as C++ does where there is a compiler for it.
set(as_cxx COMMAND ${CMAKE_COMMAND} -E echo "skipped: the header in C++, a compiler for it")
if(CXX)
    set(as_cxx COMMAND ${CXX} -x c++ -std=c++17 -Wall -Wextra -pedantic -Werror -I${CMAKE_SOURCE_DIR}/include
                       -fsyntax-only ${CMAKE_CURRENT_BINARY_DIR}/header.c)
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/header.c "#include <qcc/qcc.h>\nextern int header_is_whole;\nint header_is_whole;\n")
add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/header.checked
                   COMMAND ${CMAKE_C_COMPILER} -std=c99 -Wall -Wextra -pedantic -Werror -I${CMAKE_SOURCE_DIR}/include
                           -fsyntax-only ${CMAKE_CURRENT_BINARY_DIR}/header.c
                   COMMAND ${CMAKE_C_COMPILER} -std=c11 -Wall -Wextra -pedantic -Werror -I${CMAKE_SOURCE_DIR}/include
                           -fsyntax-only ${CMAKE_CURRENT_BINARY_DIR}/header.c
                   ${as_cxx}
                   COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_CURRENT_BINARY_DIR}/header.checked
                   DEPENDS ${CMAKE_SOURCE_DIR}/include/qcc/qcc.h VERBATIM)
add_custom_target(header_checked ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/header.checked)
