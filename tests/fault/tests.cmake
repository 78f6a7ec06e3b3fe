# What fails on purpose: memory, at each request in turn.
add_executable(fault_memory fault/memory.c)
target_link_libraries(fault_memory PRIVATE test_support)
add_test(NAME fault/memory COMMAND fault_memory ${CMAKE_CURRENT_SOURCE_DIR}/golden)
set_tests_properties(fault/memory PROPERTIES LABELS fast)
# The same by the host's own allocator, for models from files.
add_executable(fault_models fault/models.c)
target_link_libraries(fault_models PRIVATE qcc_static)
target_include_directories(fault_models PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
add_test(NAME fault/models COMMAND fault_models ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/onnx_import)
set_tests_properties(fault/models PROPERTIES LABELS fast)
# A step that is compiled twice, the second time in silence.
add_executable(fault_amp fault/amp.c)
target_link_libraries(fault_amp PRIVATE qcc_static)
target_include_directories(fault_amp PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
add_test(NAME fault/amp COMMAND fault_amp ${CMAKE_CURRENT_SOURCE_DIR}/data/torch/mlp.onnx)
set_tests_properties(fault/amp PROPERTIES LABELS fast)
# The command as a process whose calls fail, by an object that is loaded before the C library.
add_library(fault_interpose MODULE fault/interpose.c)
target_include_directories(fault_interpose PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(fault_interpose PRIVATE -fvisibility=default -U_FORTIFY_SOURCE -fno-sanitize=all)
add_executable(fault_attacks fault/attacks.c fault/attack_laws.c fault/attack_run.c fault/attack_scenes.c fault/attack_tree.c
    fault/attack_words.c)
target_link_libraries(fault_attacks PRIVATE qcc_base)
target_include_directories(fault_attacks PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
add_dependencies(fault_attacks qcc fault_interpose)
if(NOT QCC_SANITIZE) # their runtimes want to come first
    foreach(tier some many)
        set(test fault/attacks-${tier})
        add_test(NAME ${test} COMMAND fault_attacks ${CMAKE_BINARY_DIR}/qcc $<TARGET_FILE:fault_interpose> ${tier})
    endforeach()
    set_tests_properties(fault/attacks-some PROPERTIES LABELS fast ENVIRONMENT QCC_SWEEP=1)
    set_tests_properties(fault/attacks-many PROPERTIES LABELS "slow;long" TIMEOUT 3600)
endif()
# Every call of the library, with everything open: what the next programs share.
add_library(fault_world STATIC fault/world.c fault/world_verbs.c fault/commands.c)
target_link_libraries(fault_world PUBLIC qcc_static)
target_include_directories(fault_world PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
set(fault_folder ${CMAKE_CURRENT_BINARY_DIR}/fault)
file(MAKE_DIRECTORY ${fault_folder} ${fault_folder}/growth ${fault_folder}/calls ${fault_folder}/commands)
# What closes, with no memory at all.
add_executable(fault_closing fault/closing.c)
target_link_libraries(fault_closing PRIVATE fault_world)
add_test(NAME fault/closing COMMAND fault_closing ${CMAKE_SOURCE_DIR}/include/qcc/qcc.h ${fault_folder}
                                    ${CMAKE_CURRENT_SOURCE_DIR}/data/torch/mlp.onnx)
set_tests_properties(fault/closing PROPERTIES LABELS fast)
# What every call leaves behind: nothing.
add_executable(fault_growth fault/growth.c)
target_link_libraries(fault_growth PRIVATE fault_world)
target_include_directories(fault_growth PRIVATE ${CMAKE_SOURCE_DIR})
add_test(NAME fault/growth COMMAND fault_growth ${fault_folder}/growth ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/data/torch/mlp.onnx)
set_tests_properties(fault/growth PROPERTIES LABELS fast)
# Every call, with each request of memory refused, once or from then on.  Where requests are many, which ones depends on the
# commit.
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --short=8 HEAD OUTPUT_VARIABLE fault_offset
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
add_executable(fault_calls fault/calls.c fault/refuse_malloc.c)
target_link_libraries(fault_calls PRIVATE fault_world)
target_include_directories(fault_calls PRIVATE ${CMAKE_SOURCE_DIR})
foreach(tier some many)
    add_test(NAME fault/calls-${tier} COMMAND fault_calls ${fault_folder}/calls ${tier}
                                              ${CMAKE_CURRENT_SOURCE_DIR}/data/torch/mlp.onnx)
    set_tests_properties(fault/calls-${tier} PROPERTIES ENVIRONMENT QCC_SWEEP_OFFSET=${fault_offset} RESOURCE_LOCK fault_calls)
endforeach()
set_tests_properties(fault/calls-some PROPERTIES LABELS fast)
set_tests_properties(fault/calls-many PROPERTIES LABELS "slow;long")
# Every verb of the command, likewise.
add_executable(fault_verbs fault/verbs.c fault/refuse_malloc.c)
target_link_libraries(fault_verbs PRIVATE fault_world)
target_include_directories(fault_verbs PRIVATE ${CMAKE_SOURCE_DIR})
foreach(tier some many)
    add_test(NAME fault/verbs-${tier} COMMAND fault_verbs ${fault_folder}/commands ${CMAKE_CURRENT_SOURCE_DIR} ${tier})
    set_tests_properties(fault/verbs-${tier} PROPERTIES ENVIRONMENT QCC_SWEEP_OFFSET=${fault_offset} RESOURCE_LOCK fault_verbs)
endforeach()
set_tests_properties(fault/verbs-some PROPERTIES LABELS fast)
set_tests_properties(fault/verbs-many PROPERTIES LABELS "slow;long" TIMEOUT 3600)
