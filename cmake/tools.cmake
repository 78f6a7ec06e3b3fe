# The commands, in the folder of the preset: tools/NAME.c is NAME.  qcc sees the library through qcc.h alone.
get_property(floors GLOBAL PROPERTY QCC_FLOORS)
list(REVERSE floors)
add_executable(qcc_opt tools/qcc_opt.c)
target_link_libraries(qcc_opt PRIVATE ${floors} m)
target_include_directories(qcc_opt PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
set_target_properties(qcc_opt PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# What the cards say, as a page.
add_executable(op_manual tools/op_manual.c)
target_link_libraries(op_manual PRIVATE ${floors} m)
target_include_directories(op_manual PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)

# Images to learn from, for the demo and the tests.
add_executable(glyphs tools/glyphs.c)
target_link_libraries(glyphs PRIVATE m)
set_target_properties(glyphs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
