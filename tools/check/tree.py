"""What the checks share: the files of the tree, and C source without its comments and strings."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)


def files(*suffixes, under=""):
    """Tracked and new files as paths relative to the root, sorted; test data is left out."""
    out = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", under or "."],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    names = sorted(set(n for n in out.split("\0") if n and (not suffixes or n.endswith(suffixes))))
    return [n for n in names if not n.startswith("tests/data/") and (ROOT / n).is_file()]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def code(name):
    """C source with comments and literals blanked out, line numbers kept."""

    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))

    return _TOKEN.sub(blank, text(name))


def report(problems):
    """Prints the problems, one a line, and ends the check."""
    for p in problems:
        print(p)
    sys.exit(1 if problems else 0)
