"""Writes PyTorch's files for the tests: python write_torch_files.py FOLDER. It runs in a Python that has PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

NETWORKS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, classes)
        self.dropout = nn.Dropout(0.5)

    def forward(self, image):
        return self.linear(self.dropout(torch.relu(self.conv(image)).mean((2, 3))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, ids, scale):
        found = self.table(ids) * scale
        return found.sum(1), found


def make():
    return Net()


def make_with_inputs():
    return Net(), (torch.rand(1, 3, 8, 8),)


def make_wrong():
    network = Net(6)
    network.extra = nn.Linear(1, 1)
    return network


def make_nothing():
    return "a text"
"""


class Bomb:
    """An object whose pickle writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


def main(folder: Path) -> None:
    """Write all files."""
    (folder / "networks.py").write_text(NETWORKS)
    sys.path.insert(0, str(folder))
    import networks
    from safetensors.torch import save_file

    torch.manual_seed(0)
    network, image = networks.Net().eval(), torch.rand(2, 3, 8, 8)
    weights = network.state_dict()
    torch.export.save(torch.export.export(network, (image[:1],)), folder / "fixed.pt2")
    batch = {"image": {0: torch.export.Dim("batch", max=64)}}
    torch.export.save(torch.export.export(network, (image,), dynamic_shapes=batch), folder / "open.pt2")
    torch.jit.script(network).save(str(folder / "script.pt"))
    torch.jit.script(networks.Words().eval()).save(str(folder / "words.pt"))
    torch.save(network, folder / "module.pt")
    torch.save(weights, folder / "weights.pth")
    torch.save(weights, folder / "old.pt", _use_new_zipfile_serialization=False)
    training = {f"module.{name}": value for name, value in weights.items()}
    torch.save({"epoch": 3, "state_dict": training, "optimizer": {"lr": 0.1}}, folder / "training.pth.tar")
    save_file(weights, folder / "weights.safetensors")
    torch.save({"weight": torch.rand(2), "note": Bomb(folder / "exploded")}, folder / "bomb.pth")
    torch.save(nn.Sequential(nn.Linear(2, 2)), folder / "sequential.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
