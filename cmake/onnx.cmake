# frontends/onnx/file/onnx.proto becomes C when we build; nothing generated is checked in.
if(TARGET qcc_frontends)
    if(NOT PROTOC_C)
        message(FATAL_ERROR "protoc-c is missing (protobuf-c-compiler)")
    endif()
    set(generated ${CMAKE_BINARY_DIR}/generated)
    set(onnx ${generated}/frontends/onnx/file/onnx.pb-c)
    file(MAKE_DIRECTORY ${generated}/frontends/onnx/file)
    add_custom_command(
        OUTPUT ${onnx}.c ${onnx}.h
        COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR} --c_out=${generated} frontends/onnx/file/onnx.proto
        DEPENDS ${CMAKE_SOURCE_DIR}/frontends/onnx/file/onnx.proto
        VERBATIM)
    set_source_files_properties(${onnx}.c PROPERTIES COMPILE_OPTIONS "-w;-DNDEBUG")
    target_sources(qcc_frontends PRIVATE ${onnx}.c ${onnx}.h)
    target_include_directories(qcc_frontends SYSTEM PUBLIC ${generated})
    target_link_libraries(qcc_frontends PUBLIC PkgConfig::PROTOBUF_C)
endif()
