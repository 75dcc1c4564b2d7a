"""A chunk: its pictures in order, into files that are there when they are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from perframe.errors import InputError
from perframe.media.feeds import Feed
from perframe.media.picture import Picture, save_picture, write_whole
from perframe.media.sinks import Sink
from perframe.media.source import Source, open_feed
from perframe.media.video_sink import VideoSink
from perframe.processing.settings import Chunk, Settings
from perframe.processing.steps import FilmSource, ModelStep, PictureStep, Result, ScriptStep, loaded
from perframe.safety.archives import write_npz

Tell = Callable[[int], object]
"""Called with the index of each picture that is done."""
Write = Callable[[Picture, Result, PictureStep], None]


class Runner:
    """Runs chunks in this process. The model is loaded once. Scripts and states begin again with each chunk."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._feed: Feed = open_feed(settings.source, rate=settings.rate, one_size=True)
        self._model = loaded(settings)
        self._model_step: ModelStep | None = None

    def run(self, chunk: Chunk, tell: Tell) -> None:
        """Run a chunk, and put its file in its place. Raises InputError where a picture cannot be read."""
        settings, expected = self._settings, chunk.first
        first = max(0, chunk.first - settings.lead)
        with Source(self._feed, first=first) as source, ExitStack() as stack:
            write = stack.enter_context(_writer(settings, chunk, source))
            film = FilmSource(source.name, source.rate)
            step: PictureStep | None = None
            for picture in source:
                if picture.index >= chunk.stop:
                    break
                if step is None:
                    step = self._step(stack, film, picture)
                result = step(picture)
                if picture.index >= chunk.first:
                    write(picture, result, step)
                    expected += 1
                    tell(picture.index)
            if expected < chunk.stop:
                missing = f"{chunk.stop - expected} of {chunk.stop - chunk.first} pictures from {chunk.first} on"
                raise InputError(f"{source.name}: {missing} cannot be decoded")

    def _step(self, stack: ExitStack, film: FilmSource, first: Picture) -> PictureStep:
        if self._settings.script is not None:
            step = ScriptStep(self._model, self._settings, film, first)
            stack.callback(step.release)
            return step
        if self._model_step is None:
            assert self._model is not None, "process() checks that a model or a script is given"
            self._model_step = ModelStep(self._model, self._settings)
        self._model_step.begin()
        return self._model_step

    def release(self) -> None:
        """Release the model."""
        if self._model_step is not None:
            self._model_step.release()


@contextmanager
def _writer(settings: Settings, chunk: Chunk, source: Source) -> Iterator[Write]:
    """A function that writes results. When the block has ended without an error, the chunk is done."""
    done = settings.chunk_file(chunk)
    if settings.is_video:
        colors = getattr(source.feed, "colors", None)
        with VideoSink(done, settings.rate or source.rate, colors=colors, keeps_times=settings.keeps_times) as sink:
            yield partial(_film, sink)
        return
    names = [path.stem for path in getattr(source.feed, "paths", ())]
    if len({name.casefold() for name in names}) < len(names):
        names = []  # a.png beside a.jpg, or beside A.png, which is one file on Windows and macOS: numbers, then
    yield partial(_store, settings, names)
    write_whole(done, Path.touch)


def _film(sink: Sink, picture: Picture, result: Result, step: PictureStep) -> None:
    """Write a result into a film, at its picture's time, so that it is shown as wide for its height as the picture."""
    sink.write(Picture(np.asarray(result), picture.index, picture.time, picture.aspect * step.stretch))


def _store(settings: Settings, names: list[str], picture: Picture, result: Result, _step: PictureStep) -> None:
    """Write a result into its file, or into the folder: named like its picture's file, or by its number."""
    stem = names[picture.index] if names else f"{picture.index:06d}"
    suffix = (settings.suffix or ".png") if isinstance(result, np.ndarray) else ".npz"
    path = Path(settings.out) if settings.is_one_file else Path(settings.out) / f"{stem}{suffix}"
    if isinstance(result, np.ndarray):
        save_picture(result, path)
    else:
        arrays = dict(result)

        def save(beside: Path) -> None:
            with open(beside, "wb") as file:
                write_npz(file, arrays)

        write_whole(path, save)


def run_chunk(settings: str, first: int, stop: int) -> int:
    """Run one chunk, from the settings' text: for processes of other machines. Returns the number of its pictures."""
    runner = Runner(Settings.from_json(settings))
    try:
        runner.run(Chunk(first, stop), lambda _index: None)
    finally:
        runner.release()
    return stop - first
