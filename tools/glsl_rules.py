"""Holds shaders to the rules of their GLSL version, by Khronos' own compiler (Debian's package glslang-tools).

Drivers are lenient: Mesa takes in GLSL 3.30 what came with 4.20, and macOS need not. `python tools/glsl_rules.py
FOLDER` checks the shaders that `tools/shader_texts.py` has kept in a folder, and the shells of this checkout.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SHELLS = Path(__file__).resolve().parents[1] / "shaders" / "shell"
STAGES = {"sheets": "geom", "triangle": "vert"}  # the shells that are whole shaders and need no extension


def complaint(path: Path) -> str:
    """What stands against a shader: the compiler's first error, or an extension. Empty if it keeps the rules."""
    text = path.read_text(encoding="utf-8")
    stage = "comp" if "\nlayout(local_size_x" in text else STAGES.get(path.stem, path.suffix.removeprefix("."))
    stage = "frag" if stage == "glsl" else stage
    compiler = shutil.which("glslangValidator")
    if compiler is None:
        raise SystemExit("glslangValidator is not here: apt-get install glslang-tools")
    done = subprocess.run(
        [compiler, "-S", stage, str(path)], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        return next((line for line in done.stdout.splitlines() if line.startswith("ERROR")), done.stdout)
    if stage == "frag" and ("#extension" in text or not text.startswith("#version 330")):
        return "a pixel shader has version 330 and no extension"
    return ""


def complaints(folder: Path) -> Iterator[tuple[str, str]]:
    """(file, complaint) of the shaders in a folder and of the shells that stand against a rule."""
    for path in [
        *sorted(folder.glob("*.glsl")),
        *sorted(folder.glob("*.vert")),
        *(SHELLS / f"{name}.glsl" for name in STAGES),
    ]:
        found = complaint(path)
        if found:
            yield path.name, found


if __name__ == "__main__":
    listed = list(complaints(Path(sys.argv[1])))
    print("\n".join(": ".join(one) for one in listed) or "all shaders keep the rules")
    sys.exit(bool(listed))
