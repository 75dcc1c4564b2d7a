"""Tables for docs/performance.md, from the JSON of `perframe bench`: `python tools/performance_table.py OUT.json`.

One row for each model where one backend is compared with peers, else one for each side.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return "–"
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def by_model(models: dict[str, list[dict[str, Any]]]) -> None:
    """Print a row for each model: ours, then the peers and their ratios to it."""
    peers = [row["side"] for row in next(iter(models.values())) if row["threads"] is not None]
    ratios = " | ".join(f"{peer} / ours" for peer in peers)
    print(
        f"| model | perframe | {' | '.join(peers)} | {ratios} | peak memory, ours / {peers[0]} | largest difference |"
    )
    print("|---" * (4 + 2 * len(peers)) + "|")
    for name, (ours, *others) in models.items():
        times = " | ".join(f"{seconds(row['steady'])} (×{row['threads']})" for row in others)
        shares = " | ".join(f"{row['steady'] / ours['steady']:.2f}" for row in others)
        memory, most = f"{ours['memory'] / others[0]['memory']:.2f}", f"{ours['difference']:.0e}"
        print(f"| {Path(name).stem} | {seconds(ours['steady'])} | {times} | {shares} | {memory} | {most} |")


def by_side(timings: list[dict[str, Any]]) -> None:
    """Print a row for each side."""
    print("| model | side | first run | new shape | steady | ratio, peer / ours | peak memory | largest difference |")
    print("|---|---|---|---|---|---|---|---|")
    for row in timings:
        peer = row["threads"] is not None
        side = f"{row['side']}, {row['threads']} thread(s)" if peer else row["side"]
        times = " | ".join(seconds(row[what]) for what in ("first", "new_shape", "steady"))
        ratio = "" if peer or not row["ratio"] else f"{row['ratio']['steady']:.3f}, {row['peer']}"
        memory = "–" if row["memory"] is None else f"{row['memory'] / 1e6:.0f} MB"
        difference = "" if peer or row["difference"] is None else f"{row['difference']:.0e}"
        print(f"| {row['model']} | {side} | {times} | {ratio} | {memory} | {difference} |")


def main() -> None:
    """Print the table."""
    timings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["timings"]
    models: dict[str, list[dict[str, Any]]] = {}
    for row in timings:
        models.setdefault(row["model"], []).append(row)
    if all([row["threads"] is None for row in rows] == [True] + [False] * (len(rows) - 1) for rows in models.values()):
        by_model(models)
    else:
        by_side(timings)


if __name__ == "__main__":
    main()
