# make install: libsluice (static, and shared with a soname), its headers, sluice.pc, the program and its
# manual page. The engine is linked into the program; its headers are installed with a later version of it.
get_target_property(library_sources sluice SOURCES)
add_library(sluice_shared SHARED ${library_sources})
target_link_libraries(sluice_shared PRIVATE sluice_flags Threads::Threads)
target_include_directories(sluice_shared PRIVATE ${CMAKE_SOURCE_DIR}/include)
set_target_properties(sluice_shared PROPERTIES
    OUTPUT_NAME sluice VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

set(manual ${CMAKE_BINARY_DIR}/sluice.1)
add_custom_command(OUTPUT ${manual}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:sluice_cli> -DVERSION=${PROJECT_VERSION}
        -DTEMPLATE=${CMAKE_SOURCE_DIR}/packaging/man/sluice.1.in -DOUTPUT=${manual}
        -P ${CMAKE_SOURCE_DIR}/cmake/man.cmake
    DEPENDS sluice_cli packaging/man/sluice.1.in cmake/man.cmake)
add_custom_target(manual ALL DEPENDS ${manual})

install(TARGETS sluice_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sluice_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sluice)
install(TARGETS sluice sluice_shared
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The bridge to ggml is not part of libsluice, which knows no ggml.
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
    PATTERN "ggml_device.h" EXCLUDE)
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# Written at install time, since `cmake --install --prefix` may change the prefix until then.
install(CODE "
    set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/sluice.pc.in\" \"${CMAKE_BINARY_DIR}/sluice.pc\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Compiles and runs a small program against an installed tree, with the library shared and static.
if(SLUICE_TESTS AND NOT SLUICE_SANITIZE)
    add_test(NAME install_and_use COMMAND sh ${CMAKE_SOURCE_DIR}/tests/apps/install_and_use.sh
        ${CMAKE_BINARY_DIR} ${CMAKE_INSTALL_LIBDIR} ${CMAKE_C_COMPILER} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(install_and_use PROPERTIES TIMEOUT 120)
endif()
