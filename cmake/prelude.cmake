# The texts that kernels begin with: a header whose #include "..." lines are replaced by the files they name, as bytes
# of a const array.  Order is that of the header's own lines; a part between `#ifndef __CUDACC__ /* host */` and
# `#endif /* host */` is left out.  The same file, run as a script, does the joining while building.
if(CMAKE_SCRIPT_MODE_FILE)
    set(used)
    function(expand file out)
        file(READ ${ROOT}/${file} text)
        list(APPEND used ${file})
        string(REGEX REPLACE "#ifndef __CUDACC__ /\\* host \\*/.*#endif /\\* host \\*/\n" "" text "${text}")
        while(text MATCHES "(^|\n)#include \"([^\"]*)\"")
            set(line "#include \"${CMAKE_MATCH_2}\"\n")
            expand(${CMAKE_MATCH_2} part)
            string(FIND "${text}" "${line}" at)
            string(LENGTH "${line}" length)
            string(SUBSTRING "${text}" 0 ${at} before)
            math(EXPR after "${at} + ${length}")
            string(SUBSTRING "${text}" ${after} -1 rest)
            string(CONCAT text "${before}" "${part}" "${rest}")
        endwhile()
        set(${out} "${text}" PARENT_SCOPE)
    endfunction()

    expand(${HEADER} text)
    file(WRITE ${OUT}.txt "${text}")
    file(READ ${OUT}.txt bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    file(WRITE ${OUT}
        "/* ${HEADER} and what it includes, joined by cmake/prelude.cmake */\n#include \"ops/text.h\"\n\n"
        "const char ${SYMBOL}[] = {\n    ${bytes}0\n};\n")
    return()
endif()

function(qcc_prelude symbol header)
    set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
    file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/scalar/*.h ${CMAKE_SOURCE_DIR}/ops/reduce/*.h
         ${CMAKE_SOURCE_DIR}/ops/warp/*.h)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DHEADER=${header} -DSYMBOL=${symbol} -DOUT=${out}
                -P ${CMAKE_SOURCE_DIR}/cmake/prelude.cmake
        DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/${header} ${CMAKE_SOURCE_DIR}/base/half.h ${CMAKE_SOURCE_DIR}/base/philox.h
                ${CMAKE_SOURCE_DIR}/cmake/prelude.cmake
        VERBATIM)
    target_sources(qcc_ops PRIVATE ${out})
endfunction()

if(TARGET qcc_ops)
    qcc_prelude(ops_scalar_text ops/scalar.h)
    qcc_prelude(ops_reduce_text ops/reduce.h)
    qcc_prelude(ops_warp_text ops/warp.h)
    qcc_prelude(ops_scaler_text ops/update/scaler.h)
    qcc_prelude(ops_grid_text ops/sample/grid_look.h)
endif()
