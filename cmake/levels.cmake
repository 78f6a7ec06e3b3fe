# ops/level/ is compiled once per instruction set; which one runs is decided by cpuid (ops/kernels.c).  Integer
# arithmetic wraps everywhere in ops/.
if(TARGET qcc_ops)
    target_compile_options(qcc_ops PRIVATE -fwrapv)
    file(GLOB level_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/level/*.c)
    function(qcc_level name)
        add_library(qcc_level_${name} OBJECT ${level_sources})
        target_include_directories(qcc_level_${name} PRIVATE ${CMAKE_SOURCE_DIR})
        target_compile_definitions(qcc_level_${name} PRIVATE LEVEL=${name})
        # -Wno-pass-failed: clang says which loops calls (libm, fmaf without FMA) keep it from vectorizing
        target_compile_options(qcc_level_${name} PRIVATE -O3 -fwrapv $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed> ${ARGN})
        target_sources(qcc_ops PRIVATE $<TARGET_OBJECTS:qcc_level_${name}>)
    endfunction()
    qcc_level(base)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        qcc_level(v3 -march=x86-64-v3)
        qcc_level(v4 -march=x86-64-v4 -mprefer-vector-width=512)
    endif()
endif()
