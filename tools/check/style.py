"""Text rules: sizes, banned functions, // comments, blanks, invisible characters, names of this or that machine."""
import re

import tree

MAX_LINES = {".c": 600, ".h": 350}
MAX_TEST_LINES = 1200

BANNED = re.compile(
    r"(?<![\w.>])(strcpy|strcat|v?sprintf|strtok|ato[ilf]|atoll|strtou?ll?|strtou?max|gets|v?[fs]?scanf|alloca"
    r"|signal|exit|system|localtime|gmtime|strerror|s?rand)\s*\("
)
INVISIBLE = re.compile("[\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
# Hosts of package registries and paths of one machine; written in pieces so that this file passes too.
PLACES = re.compile(
    "|".join([
        r"registry\." r"(npmjs|yarnpkg)", r"(deb|security)\." r"debian\.org", r"pypi\." r"org", r"proxy\." r"golang",
        r"(?<![\w.])/work" r"/", r"/tmp" r"/(w|bash_jobs)\b", r"/root" r"/(?!\.cache)", r"/home" r"/\w",
    ])
)
BINARY = (".gguf", ".wav", ".png", ".bin", ".npy", ".s2voice", ".flac", ".mp3", ".ogg", ".opus")


def check_c(name):
    source = tree.text(name)
    code = tree.code(name)
    suffix = name[-2:]
    limit = MAX_TEST_LINES if name.startswith("tests/") else MAX_LINES[suffix]
    n_lines = source.count("\n")
    if n_lines > limit:
        yield f"{name}: {n_lines} lines, at most {limit}; split it by concept"
    for i, line in enumerate(code.split("\n"), 1):
        m = BANNED.search(line)
        if m:
            yield f"{name}:{i}: {m.group(1)} is banned"
        if "\t" in line:
            yield f"{name}:{i}: tab"
    for m in re.finditer(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//', source, re.DOTALL):
        if m.group(0) == "//":
            line = source.count("\n", 0, m.start()) + 1
            yield f"{name}:{line}: // is for temporary notes; use /* */"
    if suffix == ".h" and not re.search(r"#ifndef (\w+)\n#define \1\n", source):
        yield f"{name}: no include guard"


def check_text(name):
    source = tree.text(name)
    if source and not source.endswith("\n"):
        yield f"{name}: no line end at the end"
    for i, line in enumerate(source.split("\n"), 1):
        if line != line.rstrip():
            yield f"{name}:{i}: blank at the end of the line"
        if INVISIBLE.search(line):
            yield f"{name}:{i}: invisible character"
        if PLACES.search(line):
            yield f"{name}:{i}: names a registry host or a path of one machine"


def problems():
    for name in tree.files():
        if name.endswith(BINARY) or name.startswith("models/"):
            continue
        try:
            yield from check_text(name)
        except UnicodeDecodeError:
            if not name.startswith("fuzz/"):
                yield f"{name}: not UTF-8"
            continue
        if name.endswith((".c", ".h")):
            yield from check_c(name)


tree.report(list(problems()))
