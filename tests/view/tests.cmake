# What people see of a graph: the same bytes as before, and a page that works in a browser where there is one.
add_executable(view_file view/view_file.c)
target_link_libraries(view_file PRIVATE test_support)
add_executable(view_golden view/golden.c)
target_link_libraries(view_golden PRIVATE test_support)
add_test(NAME view/golden COMMAND view_golden ${CMAKE_CURRENT_SOURCE_DIR}/view/cases)
set_tests_properties(view/golden PROPERTIES LABELS fast)
