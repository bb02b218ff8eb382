# Flags of our own code; third-party headers come in as SYSTEM and never see them. sluice_plain_flags is for what
# goes into other programs, where a sanitizer would not start.
add_library(sluice_plain_flags INTERFACE)
target_compile_options(sluice_plain_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla
    -Wswitch-enum -Wdouble-promotion -Wnull-dereference -Wunused-macros -Wredundant-decls
    -fno-common -fvisibility=hidden -fstack-protector-strong>)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(sluice_plain_flags INTERFACE
        $<$<COMPILE_LANGUAGE:C>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op -Walloc-zero
        -Wcast-align=strict -Wstack-usage=16384>)
endif()
if(SLUICE_WERROR)
    target_compile_options(sluice_plain_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
target_compile_definitions(sluice_plain_flags INTERFACE _POSIX_C_SOURCE=200809L
    $<$<AND:$<CONFIG:Release>,$<STREQUAL:${SLUICE_SANITIZE},>>:_FORTIFY_SOURCE=2>)
target_include_directories(sluice_plain_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)

add_library(sluice_flags INTERFACE)
target_link_libraries(sluice_flags INTERFACE sluice_plain_flags)
