# A prefix of ready-made ggml libraries (tools/fetch_ggml.sh --ready): back ends are files that are loaded when the
# program runs. Stands where ggml's own build installs ggml-config.cmake.
get_filename_component(GGML_LIB_DIR "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(GGML_VERSION "0.23.0")
set(GGML_BACKEND_DL ON)
if(NOT TARGET ggml::ggml)
    file(GLOB ggml_library ${GGML_LIB_DIR}/libggml.*.so)
    add_library(ggml::ggml-base SHARED IMPORTED)
    set_target_properties(ggml::ggml-base PROPERTIES
        IMPORTED_LOCATION ${GGML_LIB_DIR}/libggml-base.so
        INTERFACE_INCLUDE_DIRECTORIES ${GGML_LIB_DIR}/../include)
    add_library(ggml::ggml SHARED IMPORTED)
    set_target_properties(ggml::ggml PROPERTIES
        IMPORTED_LOCATION ${ggml_library}
        INTERFACE_LINK_LIBRARIES ggml::ggml-base)
endif()
