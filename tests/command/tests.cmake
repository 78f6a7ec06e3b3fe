# tests/command/*.txt: command lines and what they answer; `ninja command_update` writes what they answer now.
add_executable(test_command command/run.c)
file(GLOB cases CONFIGURE_DEPENDS command/*.txt)
add_test(NAME command COMMAND test_command ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command ${cases})
set_tests_properties(command PROPERTIES LABELS fast)
add_custom_target(command_update COMMAND test_command --update ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/command
                  ${cases} DEPENDS test_command qcc VERBATIM)
