"""Who may include whom: layers go down only, and third-party headers stay behind their fences."""
import re

import tree

# Public headers by the layer that implements them.
PUBLIC = {
    "sluice/api.h": "base", "sluice/error.h": "base", "sluice/log.h": "base", "sluice/span.h": "base",
    "sluice/map.h": "source", "sluice/gguf.h": "source", "sluice/ranges.h": "source",
    "sluice/model.h": "source", "sluice/ram.h": "source", "sluice/sluice.h": "residency",
    "sluice/page_cache.h": "source", "sluice/populate.h": "source",
    "sluice/device.h": "device", "sluice/ggml_device.h": "device",
    "sluice/plan.h": "residency", "sluice/residency.h": "residency",
}

# Layer -> layers it may include besides itself. `base` and `os` are helpers that everything above may use.
LOW = {"base", "os"}
ALLOWED = {
    "base": set(),
    "os": {"base"},
    "source": LOW,
    "device": LOW | {"source"},
    "residency": LOW | {"source", "device"},
    "engine/text": LOW | {"source", "s2"},
    "engine/sample": LOW | {"source", "s2"},
    "engine/voice": LOW | {"source", "s2"},
    "engine/audio": LOW | {"source", "s2"},
    "engine/nn": LOW | {"source", "device", "residency", "s2"},
    "engine/model": LOW | {"source", "device", "residency", "s2", "engine/nn", "engine/sample"},
    "engine": LOW | {"source", "device", "residency", "s2", "engine/text", "engine/sample", "engine/voice",
                     "engine/audio", "engine/nn", "engine/model"},
    "apps/cli": LOW | {"source", "device", "residency", "s2", "apps/server"},
    "apps/preload": LOW | {"source"},
    "apps/server": LOW | {"source", "residency", "s2"},
    "s2": {"base", "source", "device", "residency"},
}

# Single includes that go up, and why: (file, header).
UPWARDS = {
    ("src/os/os_map.h", "sluice/map.h"),  # sl_file_id, the identity that the system calls fill
    ("apps/cli/cmd_synth.c", "engine/model/synth.h"),  # models of noise are no part of the public engine
    ("apps/cli/cmd_synth.c", "engine/model/synth_llama.h"),
}

# Third-party header (regular expression) -> where it may be included.
FENCES = [
    (r"(ggml|gguf)[\w-]*\.h$", r"src/engine/(nn|model)/|src/device/ggml\.c$"),
    (r"jansson\.h$", r"src/engine/text/|apps/server/(api_\w+|config)\.c$|apps/cli/plan_overlay\.c$"),
    (r"(sndfile|soxr|opusenc)\.h$|opus/", r"src/engine/audio/"),
    (r"(pcre2|utf8proc)\.h$", r"src/engine/text/"),
    (r"microhttpd\.h$", r"apps/server/http\.c$"),
    (r"png\.h$", r"tools/"),
    (r"windows\.h$", r"src/os/win32/"),
    (r"sys/(?!types\.h)|(unistd|fcntl|dirent|signal|poll|sched|termios)\.h$", r"src/os/|apps/"),
    (r"pthread\.h$", r"src/(os|base)/"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
LAYERS = sorted(ALLOWED, key=len, reverse=True)


def layer_of_path(path):
    for layer in LAYERS:
        if path == layer or path.startswith(layer + "/"):
            return layer
    return None


def layer_of_file(name):
    if name.startswith("include/sluice/"):
        return PUBLIC.get(name[len("include/"):])
    if name.startswith("include/s2/"):
        return "s2"
    return layer_of_path(name[4:] if name.startswith("src/") else name)


def layer_of_include(name, path):
    if path in PUBLIC:
        return PUBLIC[path]
    if path.startswith("s2/"):
        return "s2"
    if "/" in path:
        return layer_of_path(path)
    own_folder = name.rsplit("/", 1)[0]
    return layer_of_file(name) if (tree.ROOT / own_folder / path).exists() else None


def check(name):
    layer = layer_of_file(name)
    if layer is None:
        if name.startswith("include/"):
            yield f"{name}: a public header that tools/check/layers.py does not know; add it to PUBLIC"
        return
    for m in INCLUDE.finditer(tree.text(name)):
        path = m.group(2)
        line = tree.text(name).count("\n", 0, m.start()) + 1
        where = f"{name}:{line}"
        for pattern, places in FENCES:
            if re.match(pattern, path) and layer_of_include(name, path) is None \
                    and not re.match(places, name):
                yield f"{where}: <{path}> may be included only in {places}"
        target = layer_of_include(name, path)
        if target and target != layer and target not in ALLOWED[layer] \
                and (name, path) not in UPWARDS:
            yield f"{where}: layer {layer} may not include {path} of layer {target}"
        if "../" in path:
            yield f"{where}: include {path} from the source root, not by ../"


tree.report([p for n in tree.files(".c", ".h") for p in check(n)])
