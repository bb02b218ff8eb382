# ggml: an installed prefix (SLUICE_GGML_DIR), or the pinned source of packaging/ggml.pin.
#
# The pinned source is built once for each (bundle, flags, compiler, processor) and installed into the
# cache folder, where all build folders find it: it takes a minute, our own code seconds. A prefix appears
# there by one rename, when it is complete. AddressSanitizer builds use the plain ggml; ThreadSanitizer needs
# an instrumented one, since it cannot see the locks of code that is not.
set(fetch_ggml ${CMAKE_SOURCE_DIR}/tools/fetch_ggml.sh)
if(SLUICE_CACHE_DIR)
    set(ENV{SLUICE_CACHE_DIR} ${SLUICE_CACHE_DIR})
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/ggml.pin)

# What decides about the machine code: our flags, the compiler, and what "native" means here.
function(ggml_build_key source ret_key)
    file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/ggml/CMakeLists.txt recipe)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -march=native -dM -E -x c /dev/null
        OUTPUT_VARIABLE native ERROR_QUIET)
    string(SHA256 key "${source}|${recipe}|${CMAKE_C_COMPILER};${CMAKE_C_COMPILER_VERSION}|\
${CMAKE_CXX_COMPILER};${CMAKE_CXX_COMPILER_VERSION}|${native}")
    string(SUBSTRING ${key} 0 16 key)
    if(SLUICE_SANITIZE STREQUAL "thread")
        set(key tsan-${key})
    endif()
    set(${ret_key} ${key} PARENT_SCOPE)
endfunction()

function(ggml_run step log)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_FILE ${log} ERROR_FILE ${log})
    if(NOT result EQUAL 0)
        file(READ ${log} text)
        message(FATAL_ERROR "ggml: ${step} failed:\n${text}")
    endif()
endfunction()

function(ggml_build source prefix)
    message(NOTICE "ggml: building it once into ${prefix} (about a minute on two cores)")
    string(RANDOM LENGTH 8 suffix)
    set(work ${prefix}.${suffix})
    if(SLUICE_SANITIZE STREQUAL "thread")
        set(thread_sanitizer ON)
    endif()
    cmake_host_system_information(RESULT n_cores QUERY NUMBER_OF_LOGICAL_CORES)
    file(MAKE_DIRECTORY ${work})
    ggml_run("configuring" ${work}/log ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR}/cmake/ggml -B ${work}/build
        -G ${CMAKE_GENERATOR} -DCMAKE_BUILD_TYPE=Release -DSLUICE_GGML_SOURCE=${source}
        -DSLUICE_GGML_THREAD_SANITIZER=${thread_sanitizer} -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
        -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_INSTALL_PREFIX=${work}/prefix
        -DCMAKE_INSTALL_LIBDIR=lib)
    ggml_run("building" ${work}/log ${CMAKE_COMMAND} --build ${work}/build -j ${n_cores})
    ggml_run("installing" ${work}/log ${CMAKE_COMMAND} --install ${work}/build)
    # Fails if another build was faster; then its prefix is the one to use.
    file(RENAME ${work}/prefix ${prefix} RESULT renamed)
    file(REMOVE_RECURSE ${work})
    if(NOT EXISTS ${prefix}/lib/cmake/ggml/ggml-config.cmake)
        message(FATAL_ERROR "ggml: cannot create ${prefix}: ${renamed}")
    endif()
endfunction()

if(SLUICE_GGML_DIR)
    set(ggml_prefix ${SLUICE_GGML_DIR})
    execute_process(COMMAND ${fetch_ggml} --where OUTPUT_VARIABLE ggml_source
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
    execute_process(COMMAND ${fetch_ggml} OUTPUT_VARIABLE ggml_source RESULT_VARIABLE ggml_fetched
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT ggml_fetched EQUAL 0)
        message(FATAL_ERROR "ggml: tools/fetch_ggml.sh failed, see above")
    endif()
    ggml_build_key(${ggml_source} ggml_key)
    cmake_path(GET ggml_source PARENT_PATH ggml_cache)
    set(ggml_prefix ${ggml_cache}/ggml-${ggml_key})
    if(NOT EXISTS ${ggml_prefix})
        ggml_build(${ggml_source} ${ggml_prefix})
    endif()
endif()

# The vocabularies of the pinned source, for tests and benches; they skip what needs them if it is not there.
if(EXISTS ${ggml_source}/models)
    set(SLUICE_VOCAB_DIR ${ggml_source}/models)
endif()

find_package(ggml REQUIRED CONFIG PATHS ${ggml_prefix} NO_DEFAULT_PATH)
