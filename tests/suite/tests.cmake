if(TARGET qcc_api)
    add_executable(run_suite suite/run_suite.c)
    target_link_libraries(run_suite PRIVATE ${floors})
    # Debian's stored conformance tests; each folder must keep at least as many passing as it had.
    set(onnx_data /usr/share/libonnx-testdata/data)
    foreach(folder_least IN ITEMS node:910 simple:9 pytorch-operator:28 pytorch-converted:67)
        string(REPLACE ":" ";" pair ${folder_least})
        list(GET pair 0 folder)
        list(GET pair 1 least)
        add_test(NAME suite/${folder} COMMAND run_suite ${onnx_data}/${folder} --least ${least}
                 --exceptions "${CMAKE_CURRENT_SOURCE_DIR}/suite/exceptions.txt#1.12")
        set_tests_properties(suite/${folder} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
    endforeach()
    # Written and read back, as text and as ONNX, they are the same graphs with the same results.
    foreach(form IN ITEMS qir onnx)
        add_test(NAME suite/node-through-${form} COMMAND run_suite ${onnx_data}/node --through ${form} --least 910
                 --exceptions "${CMAKE_CURRENT_SOURCE_DIR}/suite/exceptions.txt#1.12")
        set_tests_properties(suite/node-through-${form} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
    endforeach()
    # Gradient as ONNX's own tests do not ask for it.
    foreach(form IN ITEMS qir onnx)
        add_test(NAME suite/gradient-through-${form}
                 COMMAND run_suite ${CMAKE_CURRENT_SOURCE_DIR}/data/gradient --through ${form} --least 8)
        set_tests_properties(suite/gradient-through-${form} PROPERTIES LABELS suite)
    endforeach()
    # The sets of newer releases, where they lie beside the project: the newest, and the one before it.
    foreach(release_least IN ITEMS 1.23:1825 1.22:1718)
        string(REPLACE ":" ";" pair ${release_least})
        list(GET pair 0 release)
        list(GET pair 1 least)
        add_test(NAME suite/onnx-${release}
                 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/suite/release $<TARGET_FILE:run_suite> ${release} ${least})
        set_tests_properties(suite/onnx-${release} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
    endforeach()
    foreach(form IN ITEMS qir onnx)
        add_test(NAME suite/onnx-1.23-through-${form}
                 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/suite/release $<TARGET_FILE:run_suite> 1.23 1825 --through ${form})
        set_tests_properties(suite/onnx-1.23-through-${form} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
    endforeach()
    # Where their attention in 16 bits differs from ours, ours is nearer to the truth.
    add_test(NAME suite/attention-16
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/python/oracle "onnx, ml_dtypes, numpy"
                     ${CMAKE_CURRENT_SOURCE_DIR}/suite/attention16.py $<TARGET_FILE:qcc>
                     ${CMAKE_SOURCE_DIR}/../shared/onnx-node-1.23.tar.xz)
    set_tests_properties(suite/attention-16 PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
endif()

# Mixed precision in the same models, and in what trains them.
foreach(laws IN ITEMS amp amp_order amp_steps amp_values)
    add_test(NAME suite/${laws} COMMAND test_table_${laws} /usr/share/libonnx-testdata/data)
    set_tests_properties(suite/${laws} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
endforeach()

# The same models through their text.
add_executable(suite_text suite/text.c golden/values.c)
target_link_libraries(suite_text PRIVATE test_support)
foreach(folder_least IN ITEMS node:931 simple:23 pytorch-operator:35 pytorch-converted:82)
    string(REPLACE ":" ";" pair ${folder_least})
    list(GET pair 0 folder)
    list(GET pair 1 least)
    add_test(NAME suite/text/${folder} COMMAND suite_text /usr/share/libonnx-testdata/data/${folder} --least ${least})
    set_tests_properties(suite/text/${folder} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
endforeach()

# The same models through each pipeline, every pass verified.
foreach(pipeline IN ITEMS clean freeze)
    add_test(NAME suite/passes/${pipeline}
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/suite/passes $<TARGET_FILE:qcc_opt> ${pipeline} 1071
                     /usr/share/libonnx-testdata/data)
    set_tests_properties(suite/passes/${pipeline} PROPERTIES LABELS suite SKIP_RETURN_CODE 77)
endforeach()
