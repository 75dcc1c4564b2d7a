"""The functions that code in an untrusted PyTorch file may call.

TorchScript runs when a file is loaded (`__setstate__`) and when it is exported, and a program when it is traced or
verified. Operators compute; but some also write into files or talk to other machines. An operator may be called if it
is of a namespace that computes and takes no text, or if it is listed: an operator that reaches a file takes its name.
"""

from __future__ import annotations

import ast
import re

import torch
from worker_shared import Refused

COMPUTE = ("aten", "prim", "prims", "quantized", "_quantized")  # the namespaces
_WITH_TEXT = """
    Delete Float Int __contains__ __getitem__ __interpolate __upsample _assert_async _assert_scalar _convolution_mode
    _functional_assert_async _functional_assert_scalar _linalg_check_errors _linalg_eigh _linalg_svd _set_item add any
    capitalize center clear conv1d conv2d conv3d copy count device dict div div_ divide divide_ einsum endswith eq
    expandtabs fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2
    fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn find format ge gelu gelu_ gelu_backward get
    get_autocast_dtype gt index index_reduce index_reduce_ isalnum isalpha isdecimal isdigit isidentifier islower
    isnumeric isprintable isspace istitle isupper items join keys le len linalg_cond linalg_eigh linalg_eigvalsh
    linalg_lstsq linalg_matrix_norm linalg_norm linalg_qr linalg_svd linalg_svdvals list ljust lower lstrip lt meshgrid
    nanquantile ne ord pad pad_sequence partition percentFormat pop popitem quantile remove replace rfind rindex rjust
    rpartition rsplit rstrip scatter scatter_ scatter_reduce scatter_reduce_ searchsorted segment_reduce setdefault
    slice sort sorted split splitlines startswith stft strip swapcase title update upper values warn zfill
    RaiseException StringIndex ModuleContainerIndex
"""
WITH_TEXT = frozenset(_WITH_TEXT.split())  # operators that take a text and have no effect: modes, equations, texts
_LANGUAGE = """
    abs all annotate any bin bool chr complex dict divmod enumerate float fork getattr hasattr hash hex int isinstance
    len list max min oct ord print range rangelist round sorted str sum tensor tuple unchecked_cast uninitialized zip
"""
LANGUAGE = frozenset(_LANGUAGE.split())  # functions that TorchScript calls without a namespace
CLASSES = ("quantized", "rnn", "xnnpack")  # PyTorch's own classes that hold packed weights
HIGHER_ORDER = ("cond", "while_loop", "scan", "map_impl", "associative_scan", "wrap_with_set_grad_enabled")
_BANNED = re.compile(r"\b(from_file|rpc_\w+)\b")
_LOCAL = re.compile(r"_\d+$")  # TorchScript's own names for values
MOST_BYTES = 64 << 20  # of the code


def computes(name, schemas=None):
    """Whether an operator, such as "aten::add", computes and does nothing else."""
    namespace, _, own = name.partition("::")
    if namespace not in COMPUTE:
        return False
    if own in WITH_TEXT:
        return True
    found = torch._C._jit_get_schemas_for_operator(name) if schemas is None else schemas
    return bool(found) and not any(re.search(r"\bstr\b", str(one.type)) for each in found for one in each.arguments)


def refuse(what, where):
    """Raise Refused for a call."""
    raise Refused(
        f"its code runs when it is converted, and {where} calls {what}, which perframe does not know to be harmless. "
        "If you trust where the file comes from, pass --trust"
    )


# --- TorchScript ---


def check_script(path):
    """Raise Refused if a TorchScript file calls more than operators that compute. It is read as PyTorch reads it."""
    reader = torch._C.PyTorchFileReader(path)
    records = reader.get_all_records()
    if len({name.lower() for name in records}) < len(records):
        raise Refused("its archive has a name twice, in letters of another case maybe")
    left = MOST_BYTES
    for name in records:
        if name.startswith("code/") and not name.endswith(".debug_pkl"):
            text = reader.get_record(name)
            left -= len(text)
            if left < 0:
                raise Refused(f"its code has more than {MOST_BYTES >> 20} MiB")
            check_text(text, name)


def check_text(text, where):
    """Raise Refused if a file of TorchScript's code calls more than operators that compute."""
    try:
        source = text.decode("ascii")
        tree = ast.parse(source)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise Refused(f"{where} is not code that TorchScript writes: {error}") from None
    if found := _BANNED.search(source):  # also in texts, which the two languages may read otherwise
        refuse(found[0], where)
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            parts = chain(node, inner)
            if parts is not None and not is_harmless(parts):
                refuse(".".join(parts), where)
        elif isinstance(node, ast.Name) and node not in inner and node.id in ("torch", "ops", "__torch__"):
            refuse(node.id, where)  # under another name its functions could be called unseen
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in LANGUAGE and not _LOCAL.match(node.func.id):
                refuse(node.func.id, where)
        elif isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Lambda)):
            refuse(type(node).__name__, where)


def chain(node, inner):
    """The names in a.b.c, if it begins with one; the parts of it are added to `inner`."""
    parts = []
    while isinstance(node, ast.Attribute):
        inner.add(node)
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None  # of a value
    inner.add(node)
    return [node.id, *reversed(parts)]


def is_harmless(parts):
    """Whether what a chain of names leads to may be called."""
    root, *names = parts
    if root == "torch":
        return len(names) == 1 and computes(f"aten::{names[0]}")
    if root == "ops":
        return len(names) == 2 and computes("::".join(names))
    if root == "__torch__" and names[:2] == ["torch", "classes"]:
        return len(names) > 2 and names[2] in CLASSES
    return True


# --- exported programs ---


def check_program(program):
    """Raise Refused if a program calls more than operators that compute."""
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            if node.op == "call_function" and not is_harmless_target(node.target):
                refuse(getattr(node.target, "__name__", str(node.target)), "its program")


def is_harmless_target(target):
    """Whether a function of a program's node computes and does nothing else."""
    if isinstance(target, torch._ops.OpOverload):
        return computes(target._schema.name, [target._schema])
    if isinstance(target, torch._ops.HigherOrderOperator):
        return target.name() in HIGHER_ORDER
    return getattr(target, "__module__", None) in ("_operator", "math", "torch.sym_node") or target in (
        torch.sym_max,
        torch.sym_min,
        torch.sym_int,
        torch.sym_float,
        torch.sym_not,
        torch.sym_ite,
    )
