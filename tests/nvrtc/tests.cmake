# tests/nvrtc/NAME.c: texts of kernels through NVRTC, skipped where it is not installed; nvrtc.h is the way to it.
file(GLOB programs CONFIGURE_DEPENDS nvrtc/*.c)
foreach(source IN LISTS programs)
    get_filename_component(name ${source} NAME_WE)
    add_executable(test_nvrtc_${name} ${source})
    target_link_libraries(test_nvrtc_${name} PRIVATE test_support ${floors} PkgConfig::CMOCKA m ${CMAKE_DL_LIBS})
    target_compile_definitions(test_nvrtc_${name} PRIVATE QCC_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_include_directories(test_nvrtc_${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include
                                ${CMAKE_SOURCE_DIR}/tests)
    add_test(NAME nvrtc/${name} COMMAND test_nvrtc_${name})
    set_tests_properties(nvrtc/${name} PROPERTIES LABELS slow)
endforeach()
