# One op and one rule more than ours, taken from the pages that explain them; nothing of the library is changed.
set(outside ${CMAKE_CURRENT_BINARY_DIR}/outside)
function(outside_block page mark file)
    add_custom_command(OUTPUT ${outside}/${file}
                       COMMAND ${CMAKE_COMMAND} -DPAGE=${CMAKE_SOURCE_DIR}/docs/${page} -DMARK=${mark}
                               -DFILE=${outside}/${file} -P ${CMAKE_CURRENT_SOURCE_DIR}/outside/extract.cmake
                       DEPENDS ${CMAKE_SOURCE_DIR}/docs/${page} ${CMAKE_CURRENT_SOURCE_DIR}/outside/extract.cmake VERBATIM)
endfunction()
outside_block(ops.md card pairwise_distance.c)
outside_block(ops.md attrs attrs.h)
outside_block(ops.md outside number.h)
outside_block(passes.md rule distances.c)
add_executable(test_outside outside/outside.c ${outside}/pairwise_distance.c ${outside}/distances.c ${outside}/attrs.h ${outside}/number.h)
target_include_directories(test_outside BEFORE PRIVATE ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(test_outside PRIVATE -include ${CMAKE_CURRENT_SOURCE_DIR}/outside/words.h)
target_link_libraries(test_outside PRIVATE test_support ${floors} PkgConfig::CMOCKA m)
add_test(NAME outside COMMAND test_outside)
set_tests_properties(outside PROPERTIES LABELS fast)

# The program of docs/api.md.
outside_block(api.md example api_example.c)
add_executable(test_api_page ${outside}/api_example.c)
target_link_libraries(test_api_page PRIVATE qcc_shared)
add_test(NAME outside/api_example COMMAND test_api_page ${CMAKE_SOURCE_DIR}/tests/command/models/mlp.onnx)
set_tests_properties(outside/api_example PROPERTIES LABELS fast PASS_REGULAR_EXPRESSION "^[-0-9.]+\n[-0-9.]+\n[-0-9.]+\n[-0-9.]+\n$")
outside_block(api.md training api_training.c)
add_executable(test_api_training ${outside}/api_training.c)
target_link_libraries(test_api_training PRIVATE qcc_shared)
add_test(NAME outside/api_training COMMAND test_api_training ${CMAKE_SOURCE_DIR}/tests/command/models/mlp.onnx
                                           ${CMAKE_CURRENT_BINARY_DIR}/api_training.onnx)
set_tests_properties(outside/api_training PROPERTIES LABELS fast
                     PASS_REGULAR_EXPRESSION "^learnt, the same again, after 301 steps: [0-9]+ bytes of gradient\n$")
