# The library, shared and static, the command qcc, and how they are installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_link_libraries(qcc_api PUBLIC ZLIB::ZLIB ${CMAKE_DL_LIBS})
get_property(floors GLOBAL PROPERTY QCC_FLOORS)
set(objects)
foreach(floor IN LISTS floors)
    list(APPEND objects $<TARGET_OBJECTS:${floor}>)
endforeach()
get_property(levels GLOBAL PROPERTY QCC_LEVELS)
foreach(level IN LISTS levels) # objects that a floor takes from elsewhere are not among its own
    list(APPEND objects $<TARGET_OBJECTS:qcc_level_${level}>)
endforeach()
set(below PkgConfig::PROTOBUF_C PkgConfig::JANSSON ZLIB::ZLIB Threads::Threads m ${CMAKE_DL_LIBS})
if(QCC_OPENMP)
    list(APPEND below OpenMP::OpenMP_C)
endif()

set(map ${CMAKE_SOURCE_DIR}/cmake/libqcc.map)
add_library(qcc_shared SHARED ${objects})
set_target_properties(qcc_shared PROPERTIES OUTPUT_NAME qcc VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LINKER_LANGUAGE C LINK_DEPENDS ${map})
target_link_options(qcc_shared PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic -Wl,-z,relro,-z,now,-z,noexecstack)
target_link_libraries(qcc_shared PRIVATE ${below})
target_include_directories(qcc_shared INTERFACE ${CMAKE_SOURCE_DIR}/include)

# The static library is one object in which only the public names are left, so that it fits into any program.
add_library(qcc_static INTERFACE)
if(CMAKE_OBJCOPY AND NOT QCC_SANITIZE AND NOT QCC_COVERAGE)
    set(archive ${CMAKE_CURRENT_BINARY_DIR}/libqcc.a)
    add_custom_command(
        OUTPUT ${archive}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o qcc.whole.o ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden qcc.whole.o
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_AR} rcs ${archive} qcc.whole.o
        DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(qcc_archive ALL DEPENDS ${archive})
    add_dependencies(qcc_static qcc_archive)
    target_link_libraries(qcc_static INTERFACE ${archive})
    install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
else()
    target_link_libraries(qcc_static INTERFACE qcc_api)
endif()
target_link_libraries(qcc_static INTERFACE ${below})
target_include_directories(qcc_static INTERFACE ${CMAKE_SOURCE_DIR}/include)

add_executable(qcc tools/qcc.c)
target_link_libraries(qcc PRIVATE qcc_static)
set_target_properties(qcc PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# What derives from the options table.
if(NOT CMAKE_CROSSCOMPILING)
    add_custom_command(OUTPUT qcc.1 qcc.bash
                       COMMAND qcc --help=man -o ${CMAKE_CURRENT_BINARY_DIR}/qcc.1
                       COMMAND qcc --help=completion -o ${CMAKE_CURRENT_BINARY_DIR}/qcc.bash
                       DEPENDS qcc VERBATIM)
    add_custom_target(derived ALL DEPENDS qcc.1 qcc.bash)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/qcc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/qcc.bash RENAME qcc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

configure_file(docs/qcc.3 qcc.3 @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/qcc.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/qcc.pc.in qcc.pc @ONLY)
configure_package_config_file(cmake/qccConfig.cmake.in qccConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qcc
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(qccConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS qcc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS qcc_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT dev)
install(DIRECTORY tables DESTINATION ${CMAKE_INSTALL_DATADIR}/qcc)
install(FILES python/qcc.py DESTINATION ${CMAKE_INSTALL_DATADIR}/qcc/python)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES include/qcc/qcc.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qcc)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/qcc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/qccConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/qccConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qcc)
