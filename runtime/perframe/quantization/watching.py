"""Runs of a model whose inner values are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from perframe.errors import InputError
from perframe.execution.worker import Worker
from perframe.ir import Array, Model
from perframe.quantization.ranges import Histogram
from perframe.quantization.samples import Sample
from perframe.tensor import Tensor

Progress = Callable[[str, float], None]


class Watch:
    """A worker on the CPU of a model that also outputs some inner values, by their names. Use it in a `with` block."""

    def __init__(self, model: Model, names: Iterable[str]) -> None:
        given = {value.name for value in model.inputs}
        self.names = [name for name in dict.fromkeys(names) if name not in given]
        self._inputs = [name for name in dict.fromkeys(names) if name in given]
        watched = model.copy()
        watched.keep_outputs([*dict.fromkeys((*watched.output_names, *self.names))])
        self._worker = Worker(watched)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.release()

    def run(self, sample: Sample) -> Mapping[str, Array]:
        """Return the values of a run. Blocks."""
        self._worker.schedule(dict(sample))
        found = {name: sample[name] for name in self._inputs}
        for name in self.names:
            value = self._worker.peek_output(name)
            if isinstance(value, Tensor):
                found[name] = value.download_to_array()
        return found


def histograms(
    model: Model, names: Sequence[str], samples: Iterable[Sample], progress: Progress
) -> dict[str, Histogram]:
    """Run a model for each sample, and count its values. Raises InputError if a run makes NaN or infinity."""
    found = {name: Histogram() for name in names}
    with Watch(model, names) as watch:
        for number, sample in enumerate(samples, 1):
            progress(f"runs {model.name}: {number}", 0.0)
            for name, values in watch.run(sample).items():
                if not np.isfinite(values).all():
                    raise InputError(
                        f"run {number} of the calibration data makes NaN or infinity in {name!r}: leave it out, or "
                        "give the model values that it can compute with"
                    )
                found[name].add(values)
    return found
