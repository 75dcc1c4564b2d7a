"""Token by token with caches that grow: logits as onnxruntime's, and texts as transformers'."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import perframe as pf
from models.decoders import DECODERS, VOCABULARY, export
from perframe.plan import planner
from perframe.testing.checks import trace

TOKENS = 512
PROMPT = [5, 6, 7, 30, 200]


@pytest.fixture(scope="module", params=sorted(DECODERS))
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, str]]:
    """A model of transformers, its encoder's output, and the file of the decoder."""
    file = tmp_path_factory.mktemp("decoders") / f"{request.param}.onnx"
    model, hidden = export(DECODERS[request.param], file)
    yield model, hidden, str(file)


def text_of(model: Any, hidden: Any, tokens: int) -> list[int]:
    """The tokens that transformers generates, the likeliest first."""
    ids = torch.tensor([PROMPT])
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "use_cache": True}
    if hidden is None:
        return model.generate(ids, **settings)[0, len(PROMPT) :].tolist()
    cache, found = None, list[int]()
    while len(found) < tokens:
        out = model(decoder_input_ids=ids, encoder_outputs=(hidden,), past_key_values=cache, use_cache=True)
        cache, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)
        found.append(int(ids))
    return found


class Peer:
    """onnxruntime, whose caches go out and in again."""

    def __init__(self, file: str) -> None:
        self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in self.session.get_outputs()]
        self.past = {
            value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
            for value in self.session.get_inputs()
            if value.name.startswith("past")
        }

    def logits(self, given: dict[str, Any]) -> Any:
        logits, *caches = self.session.run(self.names, {**given, **self.past})
        self.past = dict(zip(self.past, caches, strict=True))
        return logits


def inputs(model: pf.Model, hidden: Any, ids: list[int], total: int) -> dict[str, Any]:
    given = {
        "input_ids": np.array([ids], np.int64),
        "attention_mask": np.ones((1, total), np.int64),
        "position_ids": np.arange(total - len(ids), total)[None],
        "encoder_hidden_states": None if hidden is None else hidden.numpy(),
    }
    return {value.name: given[value.name] for value in model.inputs if value.name in given}


@pytest.mark.slow
def test_many_tokens(decoder: tuple[Any, Any, str], backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, hidden, file = decoder
    model, peer, found, planned = pf.load(file), Peer(file), list[int](), list[int]()
    with pf.Worker(model, backend, carry=pf.text.carry_of(model), carry_capacity=TOKENS + 8) as worker:
        ids, total = PROMPT, 0
        init = planner.Planner.__init__
        while len(found) < TOKENS:
            total += len(ids)
            given = inputs(model, hidden, ids, total)
            got = worker.schedule(given).peek_output("logits").numpy()
            want = peer.logits(given)  # T5 scales no scores: its logits are large, and so are their last bits
            np.testing.assert_allclose(got, want, 1e-4, 1e-4 * np.abs(want).max(), err_msg=f"after {total} tokens")
            ids = [int(got[0, -1].argmax())]
            found += ids
            trace(worker)
        assert found == text_of(source, hidden, TOKENS)

        worker.reset()

        def counted(self: Any, *given: Any) -> None:
            planned.extend([total] * (threading.current_thread() is threading.main_thread()))  # jobs trace beside it
            init(self, *given)

        monkeypatch.setattr(planner.Planner, "__init__", counted)
        ids, again, total = PROMPT, list[int](), 0
        while len(again) < TOKENS:
            total += len(ids)
            ids = [
                int(worker.schedule(inputs(model, hidden, ids, total)).peek_output("logits").numpy()[0, -1].argmax())
            ]
            again += ids
        assert again == found
        assert not planned


def test_text(decoder: tuple[Any, Any, str], backend: str) -> None:
    """`pf.text.generate` makes the same text, whatever the slices of the prompt."""
    source, hidden, file = decoder
    letters = pf.text.Characters("".join(map(chr, range(0x4E00, 0x4E00 + VOCABULARY))))
    given = {} if hidden is None else {"encoder_hidden_states": hidden.numpy()}
    expected = text_of(source, hidden, 12)
    for size in (64, 2):
        made = pf.text.generate(
            file, PROMPT, tokenizer=letters, backend=backend, max_tokens=12, inputs=given, slice_size=size
        )
        assert "".join(made) == letters.decode(expected)
        assert made.tokens == expected and made.done
