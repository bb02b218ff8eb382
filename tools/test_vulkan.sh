#!/bin/sh
# Tests on a Vulkan device, a card or Mesa's in software, with ready-made ggml libraries: of the label vulkan, built in
# build-vulkan. Skipped, with the reason, on computers that cannot have the libraries or a driver; what is there must work.
#
#   tools/test_vulkan.sh [JOBS]
set -eu
cd "$(dirname "$0")/.."
jobs=${1:-2}

say() { printf '%s\n' "test_vulkan: $*" >&2; }
skip() { say "SKIPPED, nothing was tested on Vulkan: $*"; exit 0; }

[ "$(uname -sm)" = 'Linux x86_64' ] || skip "the ready-made ggml is for Linux on x86_64, this is $(uname -sm)"
tools/setup.sh vulkan || skip "there is no Vulkan driver; see packaging/debian-packages.txt, group vulkan"
prefix=$(tools/fetch_ggml.sh --ready) || skip "the ready-made ggml could not be fetched"

cmake --preset vulkan --log-level=NOTICE -DSLUICE_GGML_DIR="$prefix"
cmake --build build-vulkan -j "$jobs" --target vulkan_tests
# By itself ggml leaves devices in software out. One device is enough, and the first is the best.
GGML_VK_VISIBLE_DEVICES=0 SLUICE_NEED_VULKAN=1 \
    ctest --test-dir build-vulkan --output-on-failure -L vulkan
