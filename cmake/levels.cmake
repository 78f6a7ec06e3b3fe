# ops/kernels/level/ is compiled once per instruction set; which one runs is decided by cpuid (ops/kernels/kernels.c).  Integer
# arithmetic wraps everywhere in ops/.
if(TARGET qcc_ops)
    target_compile_options(qcc_ops PRIVATE -fwrapv)
    if(QCC_HAS_ZERO_LOCALS) # costs a half of max_pool's time
        target_compile_options(qcc_ops PRIVATE -ftrivial-auto-var-init=uninitialized)
    endif()
    file(GLOB level_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/kernels/level/*.c)
    function(qcc_level_of name sources)
        add_library(qcc_level_${name} OBJECT ${sources})
        target_include_directories(qcc_level_${name} PRIVATE ${CMAKE_SOURCE_DIR})
        target_compile_definitions(qcc_level_${name} PRIVATE LEVEL=${name})
        # -Wno-pass-failed: clang says which loops calls (libm, fmaf without FMA) keep it from vectorizing
        # What sanitizers add to loops that are unrolled takes minutes to compile.
        set(speed -O3)
        if(QCC_SANITIZE)
            set(speed -O1)
        endif()
        target_compile_options(qcc_level_${name} PRIVATE ${speed} -fwrapv $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed> ${ARGN})
        if(QCC_HAS_ZERO_LOCALS)
            target_compile_options(qcc_level_${name} PRIVATE -ftrivial-auto-var-init=uninitialized)
        endif()
        target_sources(qcc_ops PRIVATE $<TARGET_OBJECTS:qcc_level_${name}>)
        set_property(GLOBAL APPEND PROPERTY QCC_LEVELS ${name})
    endfunction()
    function(qcc_level name)
        qcc_level_of(${name} "${level_sources}" ${ARGN})
    endfunction()
    function(qcc_level_for_products name from) # of codes and of bf16, and all else of another level
        list(TRANSFORM products_sources PREPEND ${CMAKE_SOURCE_DIR}/ops/kernels/level/ OUTPUT_VARIABLE sources)
        qcc_level_of(${name} "${sources}" ${ARGN})
        target_compile_definitions(qcc_level_${name} PRIVATE LEVEL_FROM=${from})
    endfunction()
    set(products_sources bf16_pairs.c bf16_products.c bf16_tile_pairs.c bf16_tiles.c code_products.c code_quads.c
                         code_quads_avx2.c code_tiles.c level.c)
    qcc_level(base)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        qcc_level(v3 -march=x86-64-v3)
        qcc_level(v4 -march=x86-64-v4 -mprefer-vector-width=512)
        qcc_level_for_products(v3vnni v3 -march=x86-64-v3 -mavxvnni)
        qcc_level_for_products(v4vnni v4 -march=x86-64-v4 -mprefer-vector-width=512 -mavx512vnni)
        qcc_level_for_products(v4bf16 v4 -march=x86-64-v4 -mprefer-vector-width=512 -mavx512vnni -mavx512bf16)
        qcc_level_for_products(v4amx v4 -march=x86-64-v4 -mprefer-vector-width=512 -mavx512vnni -mavx512bf16
                               -mamx-tile -mamx-bf16 -mamx-int8)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64") # NEON is there wherever the base is
        qcc_level_for_products(i8mm base -march=armv8.2-a+i8mm)
    endif()
endif()
