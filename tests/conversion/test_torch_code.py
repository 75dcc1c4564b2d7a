"""Code in PyTorch's files that does more than compute is refused before any of it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import perframe as pf
from perframe.errors import ConversionError

HEAD = """
import sys, torch
from torch import nn
Tensor = torch.Tensor
class Plain(nn.Module):
    def forward(self, x: Tensor):
        return x * 2
class Reads(nn.Module):
    def forward(self, x: Tensor):
        return x + torch.from_file(PATH, True, 4, dtype=torch.float32)
class Writes(nn.Module):
    def forward(self, x: Tensor):
        t = torch.from_file(PATH, True, 4, dtype=torch.float32)
        t.copy_(x[0])
        return x * 2 + t * 0
class Hidden(nn.Module):
    '''In a branch that does not run, in a method of a part.'''
    def __init__(self):
        super().__init__()
        self.part = Writes()
    def forward(self, x: Tensor):
        if x.shape[0] > 1000:
            x = self.part(x)
        return x * 2
class Loads(nn.Module):
    '''Its code runs when it is loaded.'''
    def __init__(self):
        super().__init__()
        self.t = torch.zeros(4)
    def forward(self, x: Tensor):
        return x * 2 + self.t * 0
    @torch.jit.export
    def __getstate__(self):
        return (torch.zeros(4), self.training)
    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, bool]):
        self.t = torch.from_file(PATH, True, 4, dtype=torch.float32)
        self.t.copy_(state[0])
        self.training = state[1]
def save_program(path):
    '''torch.export makes no program that reads a file, and loads one that somebody else has made.'''
    program = torch.export.export(Plain(), (torch.ones(1, 4),))
    graph = program.graph_module.graph
    (product,) = [node for node in graph.nodes if node.op == "call_function"]
    with graph.inserting_before(product):
        made = graph.call_function(torch.ops.aten.from_file.default, (PATH, True, 4), {"dtype": torch.float32})
        made.meta["val"] = product.meta["val"]
    torch.export.save(program, path)
class Usual(nn.Module):
    '''Operators with texts, loops, conditions, lists, exceptions, and a recurrent network.'''
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)
    def forward(self, x: Tensor):
        if x.shape[1] != 4:
            raise ValueError(f"{x.shape[1]} columns, from_stranger")
        parts = [torch.nn.functional.gelu(x * at, approximate="tanh") for at in range(2)]
        x = torch.einsum("ij,kj->ik", parts[0], torch.cat(parts)) .to("cpu")
        x = torch.nn.functional.pad(x, [0, 2], "constant", 0.0)[:, :4]
        return self.lstm(x[:, None])[0][:, 0] + torch.div(x, 2, rounding_mode="floor")
"""


def made(kind: str, how: str, python: Path, folder: Path) -> tuple[Path, Path]:
    """A file of one of these networks, and the file that it would write."""
    target, victim = folder / f"{kind}.{'pt2' if how == 'program' else 'pt'}", folder / "victim"
    x = "torch.ones(1, 4)"
    save = {
        "script": f"torch.jit.script({kind}().eval()).save({str(target)!r})",
        "trace": f"torch.jit.trace({kind}().eval(), {x}).save({str(target)!r})",
        "program": f"save_program({str(target)!r})",
    }[how]
    code = HEAD.replace("PATH", repr(str(victim)))
    (folder / "make.py").write_text(code + save)
    subprocess.run([python, folder / "make.py"], check=True, capture_output=True)
    victim.unlink(missing_ok=True)
    return target, victim


CASES = [
    ("Reads", "script", False),
    ("Writes", "script", True),
    ("Hidden", "script", False),
    ("Loads", "script", False),
    ("Writes", "trace", False),
    ("Plain", "program", False),
    ("Plain", "program", True),
]


@pytest.mark.parametrize(("kind", "how", "verify"), CASES)
def test_code_with_effects_is_refused_before_it_runs(
    kind: str, how: str, verify: bool, torch_python: Path, tmp_path: Path
) -> None:
    source, victim = made(kind, how, torch_python, tmp_path)
    with pytest.raises(ConversionError, match=r"calls (torch\.)?(aten::)?from_file.* pass --trust"):
        pf.convert(source, tmp_path / "o.onnx", inputs={"x": (1, 4)}, opset=17, verify=verify, python=torch_python)
    assert not victim.exists() and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("how", ["script", "trace"])
def test_usual_code_is_converted(how: str, torch_python: Path, tmp_path: Path) -> None:
    source, _ = made("Usual", how, torch_python, tmp_path)
    made_of_it = pf.convert(
        source, tmp_path / "o.onnx", inputs={"x": (1, 4)}, opset=17, verify=True, python=torch_python
    )
    assert made_of_it.agrees


def test_trust_allows_it(torch_python: Path, tmp_path: Path) -> None:
    source, victim = made("Loads", "script", torch_python, tmp_path)
    pf.convert(source, tmp_path / "o.onnx", inputs={"x": (1, 4)}, opset=17, trust=True, python=torch_python)
    assert victim.exists()


TRICKS = {
    "an alias": 'def f(x: Tensor):\n  _0 = torch.save\n  return _0(x, "a")\n',
    "an alias of the module": 'def f(x: Tensor):\n  t = torch\n  return t.save(x, "a")\n',
    "a namespace": 'def f(x: Tensor):\n  return ops.aten.save(x, "a")\n',
    "an alias of a namespace": 'def f(x: Tensor):\n  o = ops.aten\n  return o.save(x, "a")\n',
    "an attribute by its name": 'def f(x: Tensor):\n  return getattr(torch, "save")(x, "a")\n',
    "another machine": 'def f(x: Tensor):\n  return rpc_async("a", x)\n',
    "another namespace": "def f(x: Tensor):\n  return ops.c10d.send(x)\n",
    "a class of PyTorch's": "def f(x: __torch__.torch.classes.dist_rpc.Anything):\n  pass\n",
    "a default": 'def f(x: int=torch.save(1, "a")):\n  pass\n',
    "an unknown function": "def f(x: Tensor):\n  return something(x)\n",
    "no code": "def f(x: Tensor)\n  return",
    "no ASCII": "def f(x: Tensor):\n  return t\u00f6rch(x)\n",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_code_that_hides_a_call_is_refused(trick: str, torch_python: Path) -> None:
    workers = Path(pf.__file__).parent / "conversion" / "workers"
    code = (
        f"import sys; sys.path.insert(0, {str(workers)!r})\nimport torch_code, worker_shared\n"
        f"try: torch_code.check_text({TRICKS[trick].encode()!r}, 'code/a.py')\n"
        "except worker_shared.Refused as error: print('refused', error)"
    )
    done = subprocess.run([torch_python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused")
