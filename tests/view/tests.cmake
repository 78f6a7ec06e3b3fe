# What people see of a graph: the same bytes as before, and a page that works in a browser where there is one.
add_executable(view_file view/view_file.c)
target_link_libraries(view_file PRIVATE test_support)
add_executable(view_golden view/golden.c)
target_link_libraries(view_golden PRIVATE test_support)
add_test(NAME view/golden COMMAND view_golden ${CMAKE_CURRENT_SOURCE_DIR}/view/cases)
set_tests_properties(view/golden PROPERTIES LABELS fast)
add_executable(view_browser view/browser.c view/models.c)
target_link_libraries(view_browser PRIVATE test_support)
add_test(NAME view/browser COMMAND view_browser)
set_tests_properties(view/browser PROPERTIES LABELS slow SKIP_RETURN_CODE 77 TIMEOUT 600)
find_program(QCC_NODE NAMES node nodejs)
if(QCC_NODE)
    add_test(NAME view/script COMMAND ${QCC_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/view/script.js $<TARGET_FILE:view_file>
             ${CMAKE_CURRENT_SOURCE_DIR}/view/cases/step.qir $<TARGET_FILE:qcc>
             ${CMAKE_CURRENT_SOURCE_DIR}/command/models/mlp.onnx)
    set_tests_properties(view/script PROPERTIES LABELS fast)
endif()
