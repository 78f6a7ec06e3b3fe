# README.md and docs/*.md: what they show is done; `ninja docs_update` writes what the commands say now.
add_executable(test_docs docs/run.c)
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
list(APPEND pages ${CMAKE_SOURCE_DIR}/README.md)
add_test(NAME docs/commands COMMAND test_docs ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR} ${pages})
set_tests_properties(docs/commands PROPERTIES LABELS fast)
add_custom_target(docs_update COMMAND test_docs --update ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR} ${pages}
                  DEPENDS test_docs qcc qcc_opt VERBATIM)
