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

# An optimizer, a pass and an option more than ours: their files from the pages, and tables with a line more.  Our files that
# are made of such a table are compiled once more, with the longer one; the rest is the library's.
set(longer ${outside}/longer)
function(outside_row page mark table)
    add_custom_command(OUTPUT ${longer}/${table}
                       COMMAND ${CMAKE_COMMAND} -DPAGE=${CMAKE_SOURCE_DIR}/docs/${page} -DMARK=${mark}
                               -DTABLE=${CMAKE_SOURCE_DIR}/${table} ${ARGN} -DFILE=${longer}/${table}
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/outside/insert.cmake
                       DEPENDS ${CMAKE_SOURCE_DIR}/docs/${page} ${CMAKE_SOURCE_DIR}/${table}
                               ${CMAKE_CURRENT_SOURCE_DIR}/outside/insert.cmake ${CMAKE_CURRENT_SOURCE_DIR}/outside/extract.cmake
                       VERBATIM)
endfunction()
outside_row(ops.md optimizer-row passes/optimizers.def "-DAFTER=#define OPTIMIZERS(_)")
outside_row(passes.md pass-row passes/passes.def)
outside_row(library.md option-row api/options/options.def)
outside_block(ops.md optimizer update_signum.c)
outside_block(passes.md pass add_negative.c)
set(again ${CMAKE_SOURCE_DIR}/passes/recipe/optimizer_read.c ${CMAKE_SOURCE_DIR}/passes/registry.c)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/*.c)
foreach(source IN LISTS sources)
    file(STRINGS ${source} loops REGEX "OPT_COUNT|options[.]def")
    if(loops)
        list(APPEND again ${source})
    endif()
endforeach()
add_executable(test_outside_rows outside/rows.c ${again} ${outside}/update_signum.c ${outside}/add_negative.c
               ${longer}/passes/optimizers.def ${longer}/passes/passes.def ${longer}/api/options/options.def)
target_include_directories(test_outside_rows BEFORE PRIVATE ${longer} ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(test_outside_rows PRIVATE -include ${CMAKE_CURRENT_SOURCE_DIR}/outside/row_words.h)
target_link_libraries(test_outside_rows PRIVATE test_support ${floors} PkgConfig::CMOCKA m)
add_test(NAME outside/rows COMMAND test_outside_rows ${CMAKE_SOURCE_DIR}/tests/command/models/mlp.onnx)
set_tests_properties(outside/rows PROPERTIES LABELS fast)

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
