"""Every src/**/x.c has a tests/**/test_x.c, and file names are unique, so that either is found at once.

A public header and the internal one of the same concept may share a name."""
from collections import Counter
from pathlib import PurePosixPath

import tree

# Source files without a twin, and why.
WITHOUT_TWIN = {}

# Names that may repeat: programs, and per-system twins of one contract in src/os.
MAY_REPEAT = {"main.c"}


def check():
    tests = {PurePosixPath(n).name for n in tree.files(".c", under="tests")}
    for name in tree.files(".c", under="src"):
        path = PurePosixPath(name)
        if f"test_{path.name}" not in tests and name not in WITHOUT_TWIN:
            yield f"{name}: has no test_{path.name} under tests/"
    for name in WITHOUT_TWIN:
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
