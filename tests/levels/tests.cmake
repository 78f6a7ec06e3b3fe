# One small program by every compiler here and for every instruction set level: all must print the same bits.
set(flags -std=c11 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -I${CMAKE_SOURCE_DIR})
file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/scalar/*.h ${CMAKE_SOURCE_DIR}/ops/reduce/*.h)
set(items)
set(programs)
set(builds base:-O2)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND builds base:-O3 v3:-O3,-march=x86-64-v3 v4:-O3,-march=x86-64-v4)
endif()
foreach(compiler gcc clang)
    find_program(LEVELS_${compiler} ${compiler})
    if(LEVELS_${compiler})
        foreach(build IN LISTS builds)
            string(REGEX REPLACE ":.*" "" level ${build})
            string(REGEX REPLACE ".*:" "" options ${build})
            string(MAKE_C_IDENTIFIER ${compiler}_${build} name)
            string(REPLACE "," ";" options ${options})
            set(program ${CMAKE_CURRENT_BINARY_DIR}/levels_${name})
            add_custom_command(
                OUTPUT ${program}
                COMMAND ${LEVELS_${compiler}} ${flags} ${options} -o ${program} ${CMAKE_SOURCE_DIR}/tests/levels/hash.c -lm
                DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/ops/scalar.h ${CMAKE_SOURCE_DIR}/ops/reduce.h
                        ${CMAKE_SOURCE_DIR}/tests/levels/hash.c
                VERBATIM)
            list(APPEND programs ${program})
            list(APPEND items ${compiler}:${level}:${program})
        endforeach()
    endif()
endforeach()
add_custom_target(levels ALL DEPENDS ${programs})
add_test(NAME levels/scalar COMMAND ${CMAKE_SOURCE_DIR}/tests/levels/compare ${items})
set_tests_properties(levels/scalar PROPERTIES LABELS fast)
