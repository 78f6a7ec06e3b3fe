# base/parallel.c over libgomp instead of its own threads: for gcc release builds that share a pool with oneDNN.
option(QCC_OPENMP "run parallel regions on libgomp" OFF)
if(QCC_OPENMP)
    find_package(OpenMP REQUIRED COMPONENTS C)
    target_compile_definitions(qcc_base PUBLIC QCC_OPENMP)
    target_link_libraries(qcc_base PUBLIC OpenMP::OpenMP_C)
endif()
