# A simulated device: libcuda.so.1, libnvrtc.so.13, libcublasLt.so.13 and libnvToolsExt.so.1 in BUILD/sim, which the library finds by their names where
# LD_LIBRARY_PATH holds that folder.  No sanitizer looks at them: stacks change under it.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return() # its fibers switch stacks as that processor does
endif()
set(sim_folder ${CMAKE_BINARY_DIR}/sim)
file(MAKE_DIRECTORY ${sim_folder}/cache)
set(sim_checks 0)
if(QCC_SANITIZE MATCHES "address")
    set(sim_checks 1)
endif()
add_library(sim_cuda SHARED simcuda/audit.c simcuda/checks.c simcuda/dram.c simcuda/driver.c simcuda/driver_graphs.c
                            simcuda/driver_modules.c
                            simcuda/driver_streams.c simcuda/fibers.c simcuda/kernels.c simcuda/library.c simcuda/queue.c
                            simcuda/report.c simcuda/things.c)
set_target_properties(sim_cuda PROPERTIES OUTPUT_NAME cuda)
add_library(sim_nvrtc SHARED simcuda/nvrtc.c simcuda/scan.c)
set_target_properties(sim_nvrtc PROPERTIES OUTPUT_NAME nvrtc)
add_library(sim_cublas SHARED simcuda/cublas.c simcuda/cublas_choose.c simcuda/cublas_multiply.c)
set_target_properties(sim_cublas PROPERTIES OUTPUT_NAME cublasLt)
target_link_libraries(sim_cublas PRIVATE sim_cuda)
add_library(sim_nvtx SHARED simcuda/nvtx.c)
set_target_properties(sim_nvtx PROPERTIES OUTPUT_NAME nvToolsExt)
foreach(target sim_cuda sim_nvrtc sim_cublas sim_nvtx)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE SIM_TESTS="${CMAKE_CURRENT_SOURCE_DIR}" SIM_CACHE="${sim_folder}/cache"
                                                 SIM_CHECKS=${sim_checks})
    target_compile_options(${target} PRIVATE -fno-sanitize=all -fno-stack-protector)
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${sim_folder})
endforeach()
set_target_properties(sim_cuda sim_nvtx PROPERTIES VERSION 1 SOVERSION 1)
set_target_properties(sim_nvrtc sim_cublas PROPERTIES VERSION 13 SOVERSION 13)
# simcuda/tests/NAME.c: the simulated device itself.
file(GLOB programs CONFIGURE_DEPENDS simcuda/tests/*.c)
foreach(source IN LISTS programs)
    get_filename_component(name ${source} NAME_WE)
    add_executable(test_simcuda_${name} ${source})
    target_link_libraries(test_simcuda_${name} PRIVATE ${floors} PkgConfig::CMOCKA m ${CMAKE_DL_LIBS} Threads::Threads)
    target_include_directories(test_simcuda_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    add_dependencies(test_simcuda_${name} sim_cuda sim_nvrtc sim_cublas sim_nvtx)
    add_test(NAME simcuda/${name} COMMAND test_simcuda_${name})
    set_tests_properties(simcuda/${name} PROPERTIES LABELS fast ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none")
endforeach()
# Programs of other folders on the engine cuda, with the simulated device as the only one that there is.
foreach(program engines:slow engines_sweep:long turns:fast chunk_loss:slow)
    string(REGEX REPLACE ":.*" "" name ${program})
    string(REGEX REPLACE ".*:" "" label ${program})
    add_executable(test_simcuda_${name} simcuda/${name}.c)
    target_link_libraries(test_simcuda_${name} PRIVATE test_support ${floors} PkgConfig::CMOCKA m ${CMAKE_DL_LIBS} Threads::Threads)
    target_include_directories(test_simcuda_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(test_simcuda_${name} PRIVATE QCC_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_dependencies(test_simcuda_${name} sim_cuda sim_nvrtc sim_cublas sim_nvtx)
    add_test(NAME simcuda/${name} COMMAND test_simcuda_${name})
    set_tests_properties(simcuda/${name} PROPERTIES LABELS ${label} ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none")
endforeach()
add_executable(test_simcuda_faults simcuda/faults.c)
add_dependencies(test_simcuda_faults sim_cuda sim_nvrtc sim_cublas sim_nvtx qcc)
add_test(NAME simcuda/faults COMMAND test_simcuda_faults $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR})
set_tests_properties(simcuda/faults PROPERTIES LABELS slow ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none")
# command/*.txt: command lines on the simulated device, in the folder of tests/command; `ninja simcuda_update` writes answers.
file(GLOB cases CONFIGURE_DEPENDS simcuda/command/*.txt)
add_test(NAME simcuda/command COMMAND test_command ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command ${cases})
set_tests_properties(simcuda/command PROPERTIES LABELS slow ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none")
add_custom_target(simcuda_update COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${sim_folder} QCC_CACHE=none $<TARGET_FILE:test_command>
                  --update ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command ${cases}
                  DEPENDS test_command qcc qcc_opt sim_cuda sim_nvrtc sim_cublas sim_nvtx VERBATIM)
# The command on it, and kernels that are kept; stored models by the program that machines with a GPU run.
add_test(NAME simcuda/cache COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/simcuda/cache $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR})
set(sim_models ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/mlp-training-16-static.onnx
               ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/cnn-training-16-static.onnx)
add_test(NAME simcuda/steps COMMAND ${CMAKE_CURRENT_BINARY_DIR}/device_steps --device cuda --same ${sim_models})
set_tests_properties(simcuda/cache simcuda/steps PROPERTIES LABELS slow ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none")
# Products by the simulated cuBLASLt, which rounds in its own way: near the reference, and the same from run to run.
set(sim_products ${sim_models} ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/vit-training-16-static.onnx
                 ${CMAKE_CURRENT_SOURCE_DIR}/data/exports/llama-training-16-static.onnx)
add_test(NAME simcuda/steps_products COMMAND ${CMAKE_CURRENT_BINARY_DIR}/device_steps --device cuda --matmul cublas ${sim_products})
set_tests_properties(simcuda/steps_products PROPERTIES LABELS slow ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none"
                     PASS_REGULAR_EXPRESSION "[1-9][0-9]* near, 0 APART, 0 that")
# Batches that travel while a step runs, each access looked at: of kernels behind one that refuses, too (checks.c).
add_test(NAME simcuda/next COMMAND test_embed_next cuda)
set_tests_properties(simcuda/next PROPERTIES LABELS slow
                     ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none;QCC_SIM_CHECKS=on")
# Steps that are told of later, on the simulated device.
add_test(NAME simcuda/later COMMAND test_embed_later cuda)
set_tests_properties(simcuda/later PROPERTIES LABELS slow
                     ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_CACHE=none;QCC_SIM_CHECKS=on")
add_test(NAME simcuda/header COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/simcuda/header)
set_tests_properties(simcuda/header PROPERTIES LABELS fast)
# Every access of the engine's kernels looked at, in an order that nobody chose.
add_test(NAME simcuda/engines_checked COMMAND test_simcuda_engines)
set_tests_properties(simcuda/engines_checked PROPERTIES LABELS slow
                     ENVIRONMENT "LD_LIBRARY_PATH=${sim_folder};QCC_SIM_CHECKS=on;QCC_SIM_ORDER=random")
