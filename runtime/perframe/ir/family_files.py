"""Where the files of a family lie: in perframe, or in the package of a layer from outside.

The family of a layer from outside is "package.stem". Its files have the paths that they would have in perframe, such as
`package/backends/cpu/families/stem.py` and `package/shaders/stem.glsl`. Where a file of the package and a file of
perframe have one name, the package's own file serves the package's layers.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module, util
from typing import TypeVar

from perframe.errors import ModelError
from perframe.resources import resource

OWN = "perframe"  # the package of a family whose name has no dot
Record = TypeVar("Record")


def family_at(module: str, operator: str) -> str:
    """Return the family of a layer that a module declares: the stem of perframe's file, or "package.stem".

    The package is the module's own, without a folder `layers` at its end. A module outside of packages, such as a
    script, has no separate files: the operator stands for the stem.
    """
    package, _, stem = module.rpartition(".")
    package = package.removesuffix(".layers")
    if not package:
        return f"{module}.{operator}"
    return stem if package == OWN else f"{package}.{stem}"


@cache
def module_of(family: str, folder: str) -> str | None:
    """Return the name of a family's module in a folder such as "backends.cpu.families"; None if it has none."""
    package, _, stem = family.rpartition(".")
    return _existing(f"{package or OWN}.{folder}.{stem}")


def read_family(record: type[Record], family: str, folder: str) -> Record | None:
    """Return a record of what a family's file defines: by the names of a dataclass' fields. None without a file.

    Raises ModelError if the file lacks a name for which the dataclass has no default.
    """
    name = module_of(family, folder)
    if name is None:
        return None
    given = vars(import_module(name))
    for field in fields(record):  # type: ignore[arg-type]  # a dataclass
        if field.name not in given and field.default is MISSING:
            raise ModelError(f"{name} does not define {field.name}")
    return record(**{field.name: given[field.name] for field in fields(record) if field.name in given})  # type: ignore[arg-type]


@cache
def own_kernel(family: str, name: str) -> str:
    """Return the name ("file" or "file.function") if the CPU kernel is perframe's, else "package:name".

    A kernel that neither has is the package's: an error then names the package.
    """
    package, file = family.rpartition(".")[0], f"backends.cpu.kernels.{name.partition('.')[0]}"
    if not package or (not _existing(f"{package}.{file}") and _existing(f"{OWN}.{file}")):
        return name
    return f"{package}:{name}"


@cache
def own_shader(family: str, name: str) -> str:
    """Return the name if the shader is perframe's, else "package:name".

    A shader that neither has is the package's: an error then names the package.
    """
    package = family.rpartition(".")[0]
    if not package or (not _has_shader(name, package) and _has_shader(name)):
        return name
    return f"{package}:{name}"


def _has_shader(name: str, package: str = "") -> bool:
    try:
        return resource("shaders", *f"{name}.glsl".split("/"), package=package).exists()
    except FileNotFoundError:
        return False


def _existing(module: str) -> str | None:
    try:
        return module if util.find_spec(module) is not None else None
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a package on the way exists, and imports what is not installed
        return None
