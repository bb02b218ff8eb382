"""Every src/**/x.c has a tests/**/test_x.c, and file names are unique, so that either is found at once.

A public header and the internal one of the same concept may share a name."""
from collections import Counter
from pathlib import PurePosixPath

import tree

# Source files that are parts of one concept and are tested through it: file -> the test of the whole.
TESTED_BY = {
    "src/device/sim_queue.c": "test_sim.c",
    "src/device/sim_ranges.c": "test_sim.c",
    "src/device/map_windows.c": "test_transfer.c",
    "src/device/slot_ring.c": "test_transfer.c",
    "src/engine/audio/opus_encoder.c": "test_writer.c",
    "src/engine/audio/pcm_encoder.c": "test_writer.c",
    "src/engine/audio/sndfile_encoder.c": "test_writer.c",
    "src/engine/model/codec_parts.c": "test_codec_decoder.c",
    "src/engine/model/hparams_reader.c": "test_hparams.c",
    "src/engine/speech_out.c": "test_pipeline.c",
    "src/engine/nn/bind.c": "test_weights.c",
    "src/engine/nn/build.c": "test_conv.c",
    "src/engine/nn/codec_kernel_attention.c": "test_codec_decoder.c",
    "src/engine/nn/codec_kernel_conv.c": "test_conv.c",
    "src/engine/nn/codec_kernel_linear.c": "test_conv.c",
    "src/engine/nn/codec_kernel_parts.c": "test_conv.c",
    "src/engine/nn/codec_kernel_up.c": "test_conv.c",
    "src/engine/nn/codec_simd.c": "test_conv.c",
    "src/engine/nn/codec_transformer.c": "test_codec_decoder.c",
    "src/engine/nn/convnext.c": "test_codec_decoder.c",
    "src/engine/nn/residual_unit.c": "test_codec_decoder.c",
}

# Names that may repeat: programs, and per-system twins of one contract in src/os.
MAY_REPEAT = {"main.c"}


def check():
    tests = {PurePosixPath(n).name for n in tree.files(".c", under="tests")}
    for name in tree.files(".c", under="src"):
        wanted = TESTED_BY.get(name, f"test_{PurePosixPath(name).name}")
        if wanted not in tests:
            yield f"{name}: has no {wanted} under tests/"
    for name in TESTED_BY:
        if not (tree.ROOT / name).exists():
            yield f"tools/check/twins.py: {name} is listed but does not exist"
    places = Counter()
    for name in tree.files(".c", ".h"):
        if not name.startswith("src/os/"):
            places[(name.startswith("include/"), PurePosixPath(name).name)] += 1
    for (_, base), n in sorted(places.items()):
        if n > 1 and base not in MAY_REPEAT:
            yield f"{base}: {n} files have this name"


tree.report(list(check()))
