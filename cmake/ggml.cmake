# ggml: an installed prefix, or the pinned source.
find_package(ggml REQUIRED CONFIG PATHS ${SLUICE_GGML_DIR} NO_DEFAULT_PATH)
