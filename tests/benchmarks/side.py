"""A peer's side of a benchmark of shaders: `bench_side.py` with these peers, in an environment of their own."""

from __future__ import annotations

from tests.benchmarks import peers

from perframe.command_line.bench_side import PEERS, main

if __name__ == "__main__":
    PEERS.update(peers.PEERS)
    main()
