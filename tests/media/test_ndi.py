"""Video over the network, tried with a stand-in for cyndilib: no NDI is here."""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import perframe as pf
from media.ndi_stand_in import FourCC, Network, install
from perframe.media import ndi, open_sink, open_source


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return install(monkeypatch)


def picture(value: int, size: tuple[int, int] = (6, 8)) -> Any:
    made = np.full((*size, 3), value, np.uint8)
    made[0] = (10, 20, 30)  # the top row
    return made


@pytest.mark.quick(cases=0)
def test_pictures_are_sent_and_received(network: Network) -> None:
    with open_sink("ndi:studio", rate=25) as sink:
        sink.write(picture(1))
        with open_source("ndi:studio") as source:
            first = next(iter(source))
            np.testing.assert_array_equal(first.pixels, picture(1))
            assert first.index == 0 and source.is_live and source.rate == 25
            sink.write(pf.media.Picture(picture(2), 7, 0.4))
            second = source.picture_at(0, wait=True)
            while second is None or second.pixels[1, 0, 0] != 2:
                second = source.picture_at(0, wait=True)
            assert second.time > 0
    (sender,) = network.all_senders
    assert sender.ndi_name == "studio" and not sender.is_open and not sender.clock_video
    frame = sender.video_frame
    assert frame is not None and (frame.rate, frame.code) == (Fraction(25), FourCC.RGBX)
    assert all((one[..., 3] == 255).all() for one in sender.sent)
    assert not network.receivers[0].is_open and not network.finders[0].is_open


def test_sizes_may_change(network: Network) -> None:
    with open_sink("ndi:studio") as sink, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(sink), "keeps_all", True)
        for size in ((6, 8), (6, 8), (5, 7), (6, 8)):
            sink.write(picture(3, size))
    shapes = [[one.shape[:2] for one in sender.sent] for sender in network.all_senders]
    assert shapes == [[(6, 8), (6, 8)], [(5, 7)], [(6, 8)]]
    assert not any(sender.is_open for sender in network.all_senders) and not network.senders


@pytest.mark.quick(cases=0)
def test_rows_with_padding_and_smaller_pictures(network: Network) -> None:
    network.padding = 12
    with open_sink("ndi") as sink:
        sink.write(picture(9, (40, 80)))
        with open_source("ndi:HERE (perframe)") as source:
            np.testing.assert_array_equal(next(iter(source)).pixels, picture(9, (40, 80)))
        with open_source("ndi", enough=(20, 10)) as source:  # the first sender
            assert next(iter(source)).pixels.shape == (10, 20, 3)


def test_a_frame_never_waits_for_it(network: Network) -> None:
    sink = open_sink("ndi:studio")
    sink.write(picture(0))
    while not network.all_senders or not network.all_senders[0].sent:
        time.sleep(0.001)
    network.may_send.clear()
    for value in range(1, 100):
        sink.write(picture(value))
    network.may_send.set()
    sink.finish()
    sent = [int(one[1, 0, 0]) for one in network.all_senders[0].sent]
    assert sent == sorted(set(sent)) and sent[-4:] == [96, 97, 98, 99] and len(sent) <= 6


def test_what_cannot_be_sent(network: Network) -> None:
    with (
        pytest.raises(pf.InputError, match=r"the NDI sender 'refused' cannot be opened: Error creating sender"),
        open_sink("ndi:refused") as sink,
    ):
        sink.write(picture(0))
    with pytest.raises(pf.InputError, match="picture 0: a picture is H x W x 3"), open_sink("ndi:a") as sink:
        sink.write(np.zeros((4, 4, 4), np.uint8))
    with pytest.raises(pf.InputError, match="took no picture: the sender is closed"), open_sink("ndi:a") as sink:
        sink.write(picture(0))
        while not network.all_senders[-1].sent:
            time.sleep(0.001)
        network.all_senders[-1].takes = False
        sink.write(picture(1))
    with pytest.raises(pf.InputError, match="a rate is a number of pictures a second"):
        open_sink("ndi:a", rate=0)
    sink = open_sink("ndi:a")
    for _ in range(2):  # closed twice
        sink.finish()
        sink.abandon()
    with pytest.raises(pf.ClosedError):
        sink.write(picture(0))


def test_a_sender_that_is_not_there(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndi, "_SECONDS", 0.1)
    with open_sink("ndi:other") as sink:
        sink.write(picture(0))
        while not network.senders:
            time.sleep(0.001)
        with pytest.raises(pf.InputError, match=r"'studio' was not found .* within 0\.1 s; found: 'HERE \(other\)'"):
            open_source("ndi:studio")
    assert not any(finder.is_open for finder in network.finders)


def test_a_sender_that_sends_nothing(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndi, "_SECONDS", 0.1)
    network.senders["HERE (silent)"] = sys.modules["cyndilib.sender"].Sender("silent")
    with pytest.raises(pf.InputError, match=r"'silent' sent no picture for 0\.1 s"):
        open_source("ndi:silent")
    assert not network.receivers[0].is_open


@pytest.mark.quick(cases=0)
def test_a_sender_that_goes_away_and_comes_back(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndi, "_SECONDS", 0.3)
    with open_sink("ndi:studio") as sink:
        sink.write(picture(1))
        source = open_source("ndi:studio")
    with open_sink("ndi:studio") as sink:
        sink.write(picture(5))
        while (found := source.picture_at(0, wait=True)) is None or found.pixels[1, 0, 0] != 5:
            pass
    with pytest.raises(pf.InputError, match="is it still open"):
        while True:
            source.picture_at(0, wait=True)
    for _ in range(2):
        source.release()
    with pytest.raises(pf.ClosedError):
        source.picture_at(0)


def test_a_picture_that_stays_is_read_again(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the thread of a released source ends."""
    monkeypatch.setattr(ndi, "_REPEAT", 0.01)
    with open_sink("ndi:studio") as sink:
        sink.write(picture(1))
        with open_source("ndi:studio") as source:
            assert [next(iter(source)).index for _ in range(2)] == [0, 1]


def test_another_format_is_an_error(network: Network) -> None:
    with open_sink("ndi:studio") as sink:
        sink.write(picture(1))
        while not network.senders or not network.all_senders[0].sent:
            time.sleep(0.001)
        frame = network.all_senders[0].video_frame
        assert frame is not None
        frame.code = FourCC.UYVY
        with pytest.raises(pf.InputError, match="sends UYVY, although RGB was asked for"):
            open_source("ndi:studio")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cyndilib.finder", None)
    for use in (open_sink, open_source):
        with pytest.raises(pf.MissingExtraError, match=r"cyndilib: pip install 'perframe\[ndi\]'"):
            use("ndi:studio")


@pytest.mark.parametrize("name", ["spout:a", "syphon:a"])
def test_textures_have_sinks_of_the_converter(name: str) -> None:
    with pytest.raises(pf.InputError, match=rf"pf\.TextureConverter\(ctx\)\.open_sink\('{name}'\)"):
        open_sink(name)
    with pytest.raises(pf.InputError, match=rf"pf\.TextureConverter\(ctx\)\.open_source\('{name}'\)"):
        open_source(name)
