"""Generating text: a prompt is read in slices, and then each run of the model makes one token."""

from __future__ import annotations

import reprlib
import weakref
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from perframe.backends import BackendName
from perframe.errors import InputError, MissingFileError
from perframe.execution.warming import check_budget
from perframe.execution.worker import Worker
from perframe.host import next_frame
from perframe.importers.loading import load
from perframe.importers.shipped import resolved
from perframe.ir import Model
from perframe.safety.wording import counted
from perframe.tensor import BackendType, DataType
from perframe.text.names import DecoderNames, empty_caches, names_of
from perframe.text.padding import without_mask
from perframe.text.sampling import IDS, NOISE, NOW, SEEN, TokenChoice, model_of, noise_for
from perframe.text.tokenizer import Coder, Message, Pieces, Tokenizer, coder_in, genai_settings

BUDGET_MS = 4.0  # of a frame, unless the caller says
LEAST_MS = 0.05  # of a frame's budget: with less, nothing begins in this frame
Prompt = str | Sequence[int] | Sequence[Message]
# a generation refers to its worker: only a weak reference to it lets both go
_running: weakref.WeakKeyDictionary[Worker, weakref.ref[Generation]] = weakref.WeakKeyDictionary()


def generate(
    source: Worker | Model | str | Path,
    prompt: Prompt,
    *,
    tokenizer: Coder | str | Path | None = None,
    backend: BackendName = BackendType.CPU,
    ctx: Any = None,
    max_tokens: int = 256,
    temperature: float = 0.0,
    top_k: int = 50,
    top_p: float = 1.0,
    repetition: float = 1.0,
    seed: int = 0,
    stop: str | Sequence[str] = (),
    slice_size: int = 64,
    budget_ms: float | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Generation:
    """Continue a prompt with a language model. Iterate over the result for pieces of text: `for` waits for each token,
    and `async for`, in a script's coroutine, spends at most `budget_ms` milliseconds a frame (4).

    `source` is a model, a file, or a folder with a model and its tokenizer; its worker is made on `backend`, and freed
    at the end. Or it is a worker that carries the model's caches: `Worker(model, carry=pf.text.carry_of(model))`; it
    begins again. `prompt` is a text, tokens, or a conversation: a list of {"role": ..., "content": ...}, for the
    tokenizer's chat template. `tokenizer` has `encode`, `decode` and `ends`, or is the path of a tokenizer.json or the
    name of a bundled model; without it the file beside the model counts.

    A `temperature` of 0 takes the likeliest token. Otherwise one is drawn, the same ones for a `seed`: from the `top_k`
    likeliest (0: all), and of these from as few as have the share `top_p`. `repetition` over 1 makes tokens that came
    before less likely. The text ends after `max_tokens`, at an end token of the tokenizer, or before a text of `stop`.
    Prompts are read `slice_size` tokens a run. `inputs` are further inputs of the model, such as an encoder's output.

    Raises InputError, ModelError, MissingFileError and MissingExtraError.
    """
    choice = TokenChoice(temperature, top_k, top_p, repetition)
    choice.check()
    for name, number in (("max_tokens", max_tokens), ("slice_size", slice_size)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InputError(f"{name} is a number of tokens, at least 1, not {number!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is an int of at least 0, not {seed!r}")
    if budget_ms is not None:
        check_budget(budget_ms)
    stops = [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(one, str) and one for one in stops):
        raise InputError(f"stop is a text or several, not {stop!r}")
    worker, owned = _worker(source, backend, ctx)
    try:
        names_of(worker.model)  # refuses a model without tokens before its tokenizer is looked for
        coder = _coder(tokenizer, source)
        tokens = _tokens(prompt, coder)
        return Generation(worker, owned, coder, tokens, choice, max_tokens, seed, stops, slice_size, budget_ms, inputs)
    except BaseException:
        if owned:
            worker.release()
        raise


class Generation:
    """Text that is being generated. `text` is what came so far, `tokens` are its tokens, and `done` says whether it is
    over. It may be iterated once.
    """

    def __init__(
        self,
        worker: Worker,
        owned: bool,
        coder: Coder,
        prompt: Sequence[int],
        choice: TokenChoice,
        max_tokens: int,
        seed: int,
        stop: Sequence[str],
        slice_size: int,
        budget_ms: float | None,
        inputs: Mapping[str, Any] | None,
    ) -> None:
        self.text, self.tokens, self.done = "", list[int](), False
        self._worker, self._owned, self._coder, self._prompt = worker, owned, coder, prompt
        self._choice, self._most, self._stop, self._slice = choice, max_tokens, stop, slice_size
        self._budget_ms, self._random = budget_ms, np.random.default_rng(seed)
        self._inputs, self._pieces, self._total = dict(inputs or {}), Pieces(coder), 0
        self._left = self._cost = 0.0  # milliseconds: left in this frame, and of the last run
        self._names = names_of(worker.model)
        _check_inputs(worker.model, self._names, self._inputs)
        self._chooser: Worker | None = None
        self._steps: Generator[str | None, None, None] | None = None
        _running[worker] = weakref.ref(self)

    def __repr__(self) -> str:
        state = "done" if self.done else "under way" if self._steps else "not begun"
        return f"<generation, {state}: {counted(len(self.tokens), 'token')}, {reprlib.repr(self.text)}>"

    # --- iteration ---

    def __iter__(self) -> Iterator[str]:
        for piece in self._begun(None):
            if piece:
                yield piece

    async def __aiter__(self) -> AsyncIterator[str]:
        steps = self._begun(BUDGET_MS if self._budget_ms is None else self._budget_ms)
        try:
            for piece in steps:
                if piece is None:
                    await next_frame()
                elif piece:
                    yield piece
        finally:
            self._end()

    def cancel(self) -> None:
        """End the generation: no further piece comes."""
        if self._steps is not None:
            self._steps.close()
        self._end()

    def _begun(self, budget_ms: float | None) -> Iterator[str | None]:
        if self._steps is not None or self.done:
            raise InputError("a generation can be iterated once: call generate() again")
        self._budget_ms, self._left = budget_ms, budget_ms or 0.0
        self._worker.reset(empty_caches(self._worker.model, self._names))
        self._steps = self._all_steps()
        return self._steps

    def _end(self) -> None:
        if self.done:
            return
        self.done = True
        if self._chooser is not None:
            self._chooser.release()
        if self._owned:
            self._worker.release()

    # --- the steps, which yield text, or None where a frame ends ---

    def _all_steps(self) -> Generator[str | None, None, None]:
        try:
            yield from self._read_prompt()
            held = ""
            while len(self.tokens) < self._most:
                token = yield from self._chosen()
                if token in self._coder.ends:
                    break
                self.tokens.append(token)
                told, held, is_over = _before_stop(held + self._pieces.add(token), self._stop)
                if told:
                    self.text += told
                    yield told
                if is_over:
                    return
                if len(self.tokens) < self._most:
                    yield from self._run([token])
            rest = held + self._pieces.rest()
            if rest:
                self.text += rest
                yield rest
        finally:
            self._end()

    def _read_prompt(self) -> Iterator[None]:
        for begin in range(0, len(self._prompt), self._slice if self._names.carry else len(self._prompt)):
            yield from self._run(self._prompt[begin : begin + self._slice] if self._names.carry else self._prompt)

    def _run(self, tokens: Sequence[int]) -> Iterator[None]:
        """Run the model on more tokens; one without caches on all tokens again."""
        if not self._names.carry:
            tokens, self._total = [*self._prompt, *self.tokens], 0
        names, count = self._names, len(tokens)
        self._total += count
        given = {names.ids: np.array([tokens], np.int64), **self._inputs}
        if names.mask:
            given[names.mask] = np.ones((1, self._total), np.int64)
        if names.positions:
            given[names.positions] = np.arange(self._total - count, self._total)[None]
        self._cost = yield from self._scheduled(self._worker, given, self._cost)

    def _chosen(self) -> Generator[None, None, int]:
        """Choose the next token where the logits are, and read its number back."""
        logits, choice = self._worker.peek_output(self._names.logits), self._choice
        if len(logits.shape) != 3 or logits.shape[0] != 1 or not logits.shape.size:
            raise InputError(
                f"{self._worker.model.name}: the output {self._names.logits!r} is {logits.shape}, and scores of the "
                "next token are (1, length, tokens)"
            )
        count = logits.shape[2]
        chooser = self._chooser = self._chooser or self._made_chooser(count, logits.dtype)
        given: dict[str, Any] = {"logits": logits}
        if choice.repeats:
            given[IDS] = np.array([self.tokens[-1:] or self._prompt[-1:]], np.int64)
        if choice.is_random:
            given[NOISE] = noise_for(choice, count, self._random)
        yield from self._scheduled(chooser, given, 0.0)
        if self._budget_ms is None:
            return int(chooser.peek_output("token").numpy().item())
        request = chooser.peek_output("token").readback_request()
        while not request.done:
            yield from self._next_frame()
        return int(request.result().item())

    def _made_chooser(self, count: int, dtype: DataType) -> Worker:
        """Return a worker that chooses a token, beside the model's own."""
        worker, choice = self._worker, self._choice
        carry = {NOW: SEEN} if choice.repeats else {}
        made = Worker(model_of(choice, count, dtype), worker.backend_type, worker.ctx, carry=carry)
        if choice.repeats:
            seen = np.zeros((1, count), np.float32)
            seen[0, self._prompt] = 1
            made.reset(seen)
        return made

    def _scheduled(self, worker: Worker, given: dict[str, Any], cost: float) -> Generator[None, None, float]:
        """Run a worker within the budget of frames. Return the milliseconds of the run. One that took `cost` before
        begins in this frame if that much is left of the budget.
        """
        running = _running.get(self._worker)
        if running is None or running() is not self:
            raise InputError("another generation began on this worker: the caches are no longer this one's")
        if self._budget_ms is None:
            worker.schedule(given)
            return 0.0
        if self._left < min(cost, self._budget_ms) or self._left < LEAST_MS:
            yield from self._next_frame()
        used = 0.0
        for spent in worker.schedule_iterable(given, budget_ms=self._left):
            used, self._left = used + spent, self._left - spent
            if not spent.is_last:
                yield from self._next_frame()
        return used

    def _next_frame(self) -> Iterator[None]:
        yield None
        self._left = self._budget_ms or 0.0


def _before_stop(text: str, stops: Sequence[str]) -> tuple[str, str, bool]:
    """Return the text to give out, the rest that may be the begin of a stop, and whether a stop was found."""
    found = [text.index(stop) for stop in stops if stop in text]
    if found:
        return text[: min(found)], "", True
    held = max(
        (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])),
        default=0,
    )
    return text[: len(text) - held], text[len(text) - held :], False


def _check_inputs(model: Model, names: DecoderNames, given: Mapping[str, Any]) -> None:
    missing = [name for name in names.others if name not in given]
    unknown = [name for name in given if name not in names.others]
    if unknown:
        listed = ", ".join(map(repr, names.others)) or "none"
        raise InputError(f"{model.name} has no further input {unknown[0]!r}; its further inputs are {listed}")
    if missing:
        raise InputError(
            f"{model.name} also needs {', '.join(map(repr, missing))}: give inputs={{{missing[0]!r}: ...}}"
        )


def _worker(source: Worker | Model | str | Path, backend: BackendName, ctx: Any) -> tuple[Worker, bool]:
    """Return the worker, and whether it was made here."""
    if isinstance(source, Worker):
        lacking = [name for name in names_of(source.model).carry.values() if name not in source.states.sources]
        if lacking:
            raise InputError(
                f"the worker of {source.model.name} does not carry {lacking[0]!r}: make it with "
                "carry=pf.text.carry_of(model)"
            )
        return source, False
    model = without_mask(source if isinstance(source, Model) else load(_file(source)))
    return Worker(model, backend, ctx, carry=names_of(model).carry), True


def _file(source: str | Path) -> str | Path:
    """Return the file of a model: the source, or the one in this folder. Raises MissingFileError, and InputError if it
    could be one of several.
    """
    folder = Path(source)
    if not folder.is_dir():
        return source
    decoder = genai_settings(folder).get("decoder")
    named = [str(decoder["filename"])] if isinstance(decoder, dict) and "filename" in decoder else []
    names = (
        *named,
        "model.onnx",
        "decoder_with_past_model.onnx",
        "onnx/model.onnx",
        "onnx/decoder_with_past_model.onnx",
    )
    for name in names:
        if (folder / name).is_file():
            return folder / name
    others = [file for place in (folder, folder / "onnx") if place.is_dir() for file in sorted(place.iterdir())]
    models = [file for file in others if file.suffix in (".onnx", ".perframe")]
    if not models:
        raise MissingFileError(f"{folder} has no model: looked for {', '.join(names)}, *.onnx and *.perframe")
    if len(models) > 1:
        listed = ", ".join(str(file.relative_to(folder)) for file in models)
        raise InputError(f"{folder} has several models: give the file of one: {listed}")
    return models[0]


def _coder(given: Coder | str | Path | None, source: Any) -> Coder:
    if isinstance(given, str | Path):
        place = Path(resolved(given))
        if place != Path(given):  # a bundled model's
            return coder_in(place.parent)
        return coder_in(place) if place.is_dir() else Tokenizer(place)
    if given is not None:
        if not isinstance(given, Coder):
            raise InputError(f"a tokenizer has encode, decode and ends, unlike {type(given).__name__}")
        return given
    if not isinstance(source, str | Path):
        raise InputError(
            "give tokenizer=: the path of a tokenizer.json, an object with encode, decode and ends, or the name of a "
            "bundled model, such as 'talk'"
        )
    place = Path(resolved(source))
    return coder_in(place if place.is_dir() else place.parent)


def _tokens(prompt: Prompt, coder: Coder) -> list[int]:
    if isinstance(prompt, str):
        found = coder.encode(prompt)
    elif not isinstance(prompt, Sequence | np.ndarray):
        raise InputError(f"a prompt is a text, tokens or messages, not {type(prompt).__name__}")
    elif all(isinstance(one, Mapping) for one in prompt):
        if not isinstance(coder, Tokenizer):
            raise InputError("a conversation needs the chat template of a pf.text.Tokenizer: give the prompt as a text")
        found = coder.chat(cast("Sequence[Message]", prompt))
    else:
        found = [one for one in cast("Sequence[int]", prompt) if isinstance(one, int | np.integer) and one >= 0]
        if len(found) < len(prompt):
            raise InputError(f"the tokens of a prompt are ints of at least 0, unlike {prompt!r:.80}")
    if not found:
        raise InputError(f"the prompt {prompt!r:.80} has no tokens: give at least one")
    return found
