# A text file as a const array: `extern const char SYMBOL[];` ends with a NUL.  qcc_embed adds the generated source to a
# target; the same file, run as a script, writes it while building.
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ ${FILE} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    file(WRITE ${OUT} "/* ${NAME}, by cmake/embed.cmake */\n#include \"${HEADER}\"\n\n"
                      "const char ${SYMBOL}[] = {\n    ${bytes}0\n};\n")
    return()
endif()

function(qcc_embed target symbol file header)
    set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DFILE=${CMAKE_SOURCE_DIR}/${file} -DNAME=${file} -DSYMBOL=${symbol} -DHEADER=${header}
                -DOUT=${out} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()

if(TARGET qcc_frontends)
    qcc_embed(qcc_frontends view_page_css frontends/view/page.css frontends/view/page.h)
    qcc_embed(qcc_frontends view_page_js frontends/view/page.js frontends/view/page.h)
endif()
foreach(table mxnet-fp16 mxnet-bf16 pytorch-autocast)
    string(REPLACE - _ symbol ${table})
    qcc_embed(qcc_passes amp_table_${symbol} tables/${table}.txt passes/amp/shipped.h)
endforeach()
foreach(table ort trt brevitas torchao modelopt)
    qcc_embed(qcc_passes quant_table_${table} tables/quant/${table}.txt passes/quant/shipped.h)
endforeach()
