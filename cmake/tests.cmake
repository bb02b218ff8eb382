# sluice_test(NAME SOURCES... [LIBS ...] [LABELS ...] [TIMEOUT seconds]) adds one cmocka program that ctest
# runs from the source tree. With the label tsan it also runs in `make test`'s ThreadSanitizer part, with the label
# vulkan in its part with a Vulkan device.
add_custom_target(tsan_tests)
add_custom_target(vulkan_tests)

# Environment that every test gets: where the vocabularies of the ggml bundle are, and the program.
set(SLUICE_TEST_ENVIRONMENT
    "SLUICE_VOCAB_DIR=${SLUICE_VOCAB_DIR}"
    "SLUICE_PROGRAM=${CMAKE_BINARY_DIR}/sluice"
    "ASAN_OPTIONS=allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1")
if(GGML_BACKEND_DL)
    list(APPEND SLUICE_TEST_ENVIRONMENT "SLUICE_GGML_BACKENDS=${GGML_LIB_DIR}")
endif()

function(sluice_test name)
    cmake_parse_arguments(arg "" "TIMEOUT" "LIBS;LABELS" ${ARGN})
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE sluice_flags test_support ${arg_LIBS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300) # for what hangs: a sanitizer on a busy machine makes a test a hundred times slower
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
        LABELS "${arg_LABELS}" ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}")
    if("tsan" IN_LIST arg_LABELS)
        add_dependencies(tsan_tests ${name})
    endif()
    if("vulkan" IN_LIST arg_LABELS)
        add_dependencies(vulkan_tests ${name})
    endif()
endfunction()

# sluice_bench(NAME SOURCES... [LIBS ...] [ARGS ...]) adds a program to `make bench`, which runs them one after
# the other from the source tree. They are built with everything else, so that they keep compiling.
function(sluice_bench name)
    cmake_parse_arguments(arg "" "" "LIBS;ARGS" ${ARGN})
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE sluice_flags ${arg_LIBS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    add_custom_target(run_${name}
        COMMAND ${CMAKE_COMMAND} -E env ${SLUICE_TEST_ENVIRONMENT} $<TARGET_FILE:${name}> ${arg_ARGS}
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL)
    if(NOT TARGET bench)
        add_custom_target(bench)
    endif()
    add_dependencies(bench run_${name})
endfunction()
