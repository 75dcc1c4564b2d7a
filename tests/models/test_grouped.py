"""Decoders as onnxruntime-genai exports them: logits and texts as onnxruntime's, and caches that grow in place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest

import perframe as pf
from models.grouped import DECODERS, Grouped
from perframe.plan import planner
from perframe.testing.checks import trace

PROMPT = [5, 17, 80, 7, 9]
LETTERS = pf.text.Characters("".join(map(chr, range(0x4E00, 0x4E00 + 96))))


@pytest.fixture(scope="module", params=DECODERS)
def decoder(request: pytest.FixtureRequest) -> Iterator[tuple[Grouped, Any]]:
    made = DECODERS[request.param]
    yield made, made.proto()


class Peer:
    """onnxruntime, whose caches go out and in again."""

    def __init__(self, decoder: Grouped, proto: Any) -> None:
        self.session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        self.names = [value.name for value in self.session.get_outputs()]
        self.past = decoder.caches()

    def run(self, given: dict[str, Any]) -> dict[str, Any]:
        found = dict(zip(self.names, self.session.run(self.names, {**given, **self.past}), strict=True))
        self.past = {name: found[name.replace("past_key_values", "present")] for name in self.past}
        return found

    def text(self, count: int) -> list[int]:
        ids, total, found = PROMPT, 0, list[int]()
        while len(found) < count:
            total += len(ids)
            logits = self.run(inputs(ids, total))["logits"]
            ids = [int(logits[0, -1].argmax())]
            found += ids
        return found


def inputs(ids: list[int], total: int) -> dict[str, Any]:
    return {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, total), np.int64)}


def test_tokens_with_a_mask(decoder: tuple[Grouped, Any], backend: str) -> None:
    """A mask allows for padding: caches are copied, and the results are onnxruntime's."""
    made, proto = decoder
    peer, tolerance = Peer(made, proto), 2e-2 if made.half else 1e-4
    model = pf.load(proto)
    with pf.Worker(model, backend, strict=backend != "cpu", carry=pf.text.carry_of(model)) as worker:
        worker.reset(dict(made.caches()))
        ids, total = PROMPT, 0
        for step in range(14):
            total += len(ids)
            got, want = worker.schedule(inputs(ids, total)).peek_output("logits").numpy(), peer.run(inputs(ids, total))
            scale = np.abs(want["logits"]).max()
            np.testing.assert_allclose(got, want["logits"], tolerance, tolerance * scale, err_msg=f"after {total}")
            ids = [int(want["logits"][0, -1].argmax())] * (1 + step % 2)


def test_texts(decoder: tuple[Grouped, Any], backend: str) -> None:
    """`pf.text.generate` begins with empty caches, whatever the slices of the prompt."""
    made, proto = decoder
    count = 8 if made.half else 24  # close scores of float16 may change places
    expected = Peer(made, proto).text(count)
    model = pf.load(proto)
    for size in (64, 2):
        text = pf.text.generate(model, PROMPT, tokenizer=LETTERS, backend=backend, max_tokens=count, slice_size=size)
        "".join(text)
        assert text.tokens == expected


def test_caches_grow_without_a_mask(decoder: tuple[Grouped, Any], backend: str, monkeypatch: Any) -> None:
    """A run writes the new rows alone, and makes no plan."""
    made, proto = decoder
    model = pf.text.without_mask(pf.load(proto))
    assert [value.name for value in model.inputs if "mask" in value.name] == []
    with pf.Worker(model, backend, strict=backend != "cpu", carry=pf.text.carry_of(model), carry_capacity=64) as worker:
        growing = 2 * (made.layers - made.windowed)
        assert len(worker.states.layouts) == growing
        worker.reset({name: array[:, :, :0] for name, array in made.caches().items()})
        ids, planned = PROMPT, list[int]()
        init = planner.Planner.__init__
        expected = Peer(made, proto).text(24)
        for step, token in enumerate(expected):
            logits = worker.schedule(np.array([ids], np.int64)).peek_output("logits").numpy()
            ids = [token]
            if not made.half:
                assert int(logits[0, -1].argmax()) == token
            (part,) = trace(worker)
            assert len(part.latest_plan.extended) == growing
            if step == 16:
                monkeypatch.setattr(
                    planner.Planner, "__init__", lambda self, *given: (planned.append(1), init(self, *given))[1]
                )
        assert not planned


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("name", ["plain", "small"])
def test_the_first_tokens_need_few_plans(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run waits for the trace that serves all later lengths: a plan for its own length is of use once."""
    made = DECODERS[name]
    model = pf.text.without_mask(pf.load(made.proto()))
    planned, init = list[int](), planner.Planner.__init__

    def counted(self: Any, *given: Any) -> None:
        planned.extend([1] * (threading.current_thread() is threading.main_thread()))  # jobs trace beside it
        init(self, *given)

    for budget in (None, 4.0):
        with pf.Worker(model, backend, carry=pf.text.carry_of(model)) as worker:
            worker.reset(dict(made.caches()))
            monkeypatch.setattr(planner.Planner, "__init__", counted)
            for ids in (PROMPT, *[[7]] * 30):
                if budget is None:
                    worker.schedule(np.array([ids]))
                else:
                    list(worker.schedule_iterable({"input_ids": np.array([ids])}, budget_ms=budget))
                worker.peek_output("logits").numpy()
        assert 1 <= len(planned) <= 7
        planned.clear()
        monkeypatch.undo()
        model = pf.text.without_mask(pf.load(made.proto()))  # workers share templates


def test_workers_without_a_mask_share_weights() -> None:
    """Constants that may change are held by each worker, and no template on a GPU can read them."""
    made = Grouped("large", bits=4, vocabulary=512)
    model = pf.text.without_mask(pf.load(made.proto()))
    assert not [name for name, array in model.constants.items() if array.flags.writeable]
    carry = pf.text.carry_of(model)
    with pf.Worker(model, carry=carry) as one, pf.Worker(model, carry=carry) as other:
        assert one._own.parts.model is other._own.parts.model


def test_small_weights_stay_small() -> None:
    """Also beside float16, and a table that the last product shares is held once."""
    for name, most in (("small", 0.7), ("tied", 0.7), ("small half", 0.7)):
        made = DECODERS[name]
        model = pf.load(made.proto())
        weights = sum(value.constant.size for value in model.constant_values if value.constant is not None)
        tables = made.vocabulary * made.width * (not made.tied) + made.length * made.head
        with pf.Worker(model) as worker:
            held = worker.memory_use[0].constants
        assert held - 4 * tables < most * (weights - tables), name


def test_a_model_that_cannot_do_without_its_mask_stays() -> None:
    model = pf.load("talk")
    assert pf.text.without_mask(model) is model
    with pytest.raises(pf.InputError, match="not a language model"):
        pf.text.without_mask(pf.load("digits"))
