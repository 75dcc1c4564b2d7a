"""Chunks on a Ray cluster of two nodes, both on this machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import perframe as pf
from media.films import film, index_of
from perframe.media import open_source
from processing.scripts import INVERTER, save_inverter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("ray") is None and not os.environ.get("CI"), reason="Ray is not here: pip install 'perframe[ray]'"
    ),
]


def test_two_nodes_share_the_chunks(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    source, model = film(tmp_path / "in.mp4", 12), save_inverter(tmp_path / "m.onnx")
    script = tmp_path / "script.py"
    note = f"        import os, ray; open('{tmp_path}/' + ray.get_runtime_context().get_node_id() + '.node', 'a')\n"
    script.write_text(INVERTER.replace("        self.count = 0\n", "        self.count = 0\n" + note))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
        done = pf.process(source, tmp_path / "out.mp4", model, script=script, chunk=3, ray=cluster.address)
        assert done.pictures == 12
        with open_source(done.out) as found:
            assert [index_of(255 - picture.pixels) for picture in found] == list(range(12))
        assert len(list(tmp_path.glob("*.node"))) == 2, "both nodes took part"

        script.write_text(INVERTER.replace("self.count = 0", "self.count = 1 / 0"))
        with pytest.raises(pf.InputError, match=r"a task on Ray failed: .*script\.py failed at .*ZeroDivisionError"):
            pf.process(source, tmp_path / "out2.mp4", model, script=script, chunk=3, ray=cluster.address)
    finally:
        cluster.shutdown()


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(pf.InputError, match=r"there is no Ray cluster at '127\.0\.0\.1:1'"):
        pf.process(film(tmp_path / "in", 2), tmp_path / "out", save_inverter(tmp_path / "m.onnx"), ray="127.0.0.1:1")
