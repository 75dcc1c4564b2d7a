"""The table of docs/performance.md, from the JSON of `perframe bench`: `python tools/performance_table.py OUT.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return "–"
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def main() -> None:
    """Print the table."""
    timings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["timings"]
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


if __name__ == "__main__":
    main()
