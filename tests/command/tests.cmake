# tests/command/*.txt: command lines and what they answer; `ninja command_update` writes what they answer now.
add_executable(test_command command/run.c)
file(GLOB cases CONFIGURE_DEPENDS command/*.txt)
add_test(NAME command COMMAND test_command ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command ${cases})
set_tests_properties(command PROPERTIES LABELS fast)
add_custom_target(command_update COMMAND test_command --update ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command
                  ${cases} DEPENDS test_command qcc qcc_opt VERBATIM)

add_test(NAME command/updates COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/command/updates $<TARGET_FILE:test_command>
         $<TARGET_FILE:golden_run> $<TARGET_FILE:test_docs>)
set_tests_properties(command/updates PROPERTIES LABELS fast)

if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    add_test(NAME command/stops COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/command/stops ${CMAKE_BINARY_DIR}/qcc)
    set_tests_properties(command/stops PROPERTIES LABELS slow)
endif()

add_executable(test_large command/large.c)
target_include_directories(test_large PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_large PRIVATE ${floors} PkgConfig::CMOCKA m)
if(NOT QCC_SANITIZE)
    add_test(NAME command/large COMMAND test_large ${CMAKE_BINARY_DIR}/qcc ${CMAKE_BINARY_DIR})
    set_tests_properties(command/large PROPERTIES LABELS fast)
endif()
