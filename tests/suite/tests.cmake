if(TARGET qcc_api)
    add_executable(run_suite suite/run_suite.c)
    target_link_libraries(run_suite PRIVATE ${floors})
endif()
