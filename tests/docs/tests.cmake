# README.md and docs/*.md: what they show is done, and what is printed from the code is what the code prints.
# `ninja docs_update` writes both anew.
add_executable(test_docs docs/run.c)
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
list(APPEND pages ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md)
add_test(NAME docs/commands COMMAND test_docs ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR} ${pages})
add_test(NAME docs/ops-reference COMMAND sh -c "\"$1\" | diff - \"$2\" || { echo 'ninja docs_update'; exit 1; }" sh
         $<TARGET_FILE:op_manual> ${CMAKE_SOURCE_DIR}/docs/ops-reference.md)
add_test(NAME docs/names COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/docs/names $<TARGET_FILE:qcc_opt>)
add_test(NAME docs/literals COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/docs/literals ${CMAKE_SOURCE_DIR})
# Every command of the tables of docs/migration.md.
add_test(NAME docs/migration COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/docs/migration $<TARGET_FILE:qcc> ${CMAKE_SOURCE_DIR})
set_tests_properties(docs/commands docs/ops-reference docs/names docs/literals docs/migration PROPERTIES LABELS fast)
add_custom_target(docs_update COMMAND op_manual > ${CMAKE_SOURCE_DIR}/docs/ops-reference.md
                  COMMAND test_docs --update ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR} ${pages}
                  DEPENDS test_docs op_manual qcc qcc_opt glyphs VERBATIM)
# The recipes of the network that is trained fastest, of one seed: they still do what they promise.
if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    add_test(NAME docs/recipes COMMAND ${CMAKE_SOURCE_DIR}/examples/quantization/run --only cnn --seeds 1
             $<TARGET_FILE:qcc> $<TARGET_FILE:glyphs>)
    set_tests_properties(docs/recipes PROPERTIES LABELS "slow;long" TIMEOUT 1800)
endif()
# Recipes of few bits: the script over ten steps, and the vision transformer's over 300 steps, of one seed.
if(NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    add_test(NAME docs/lowbit_script COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/docs/lowbit ${CMAKE_SOURCE_DIR}/examples/lowbit/run
             $<TARGET_FILE:qcc> $<TARGET_FILE:glyphs>)
    set_tests_properties(docs/lowbit_script PROPERTIES LABELS slow)
    add_test(NAME docs/lowbit
             COMMAND ${CMAKE_SOURCE_DIR}/examples/lowbit/run --only vit --seeds 1 --steps 300 --threads 1 $<TARGET_FILE:qcc> $<TARGET_FILE:glyphs>)
    set_tests_properties(docs/lowbit PROPERTIES LABELS "slow;long" TIMEOUT 1800)
endif()
