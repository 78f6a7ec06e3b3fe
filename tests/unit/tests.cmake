# every f32 pattern
add_test(NAME unit/master-all COMMAND test_unit_master all WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
set_tests_properties(unit/master-all PROPERTIES LABELS slow TIMEOUT 600)
# a million streams of events
add_test(NAME unit/scaler-all COMMAND test_unit_scaler all WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
set_tests_properties(unit/scaler-all PROPERTIES LABELS slow TIMEOUT 600)
# both write x.npy
set_tests_properties(unit/data_feed unit/data_files PROPERTIES RESOURCE_LOCK data)
