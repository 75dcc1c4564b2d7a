"""A stand-in for the package sounddevice. A test moves the time of its devices, or they run by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

RATES = {0: (16_000, 48_000), 1: (44_100,), 2: (8_000, 16_000, 44_100, 48_000)}
NAMES = ("Inner Microphone", "USB Microphone", "Speakers")


class PortAudioError(Exception):
    """What the package raises."""


class Stream:
    """A stream. `advance` lets its time pass; with `by_clock` a thread does that."""

    def __init__(
        self,
        devices: Devices,
        is_input: bool,
        samplerate: int,
        blocksize: int,
        channels: int,
        callback: Any,
        finished_callback: Any,
    ) -> None:
        self.rate, self.block, self.channels = samplerate, blocksize, channels
        self._devices, self._is_input, self._callback = devices, is_input, callback
        self._finished = finished_callback
        self.calls: list[str] = []
        self.position = 0  # samples that the device has given or played
        self.is_open = False
        self.played: list[Any] = []
        self._time = 0.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self.is_open = True
        if self._devices.by_clock:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Play what the device has taken, and stop."""
        self.calls.append("stop")
        self._end()

    def close(self) -> None:
        """Stop, and drop what was not played yet."""
        self.calls.append("close")
        self._end()

    def unplug(self) -> None:
        """Stop by itself."""
        self._end()

    def _end(self) -> None:
        was_open, self.is_open = self.is_open, False
        if was_open:
            self._finished()

    def advance(self, seconds: float) -> None:
        """Call back for each block that ends within this time."""
        self._time += seconds
        while self.is_open and self.position + self.block <= self._time * self.rate + 1e-6:
            data = np.zeros((self.block, self.channels), np.float32)
            if self._is_input:
                data += self._devices.signal((self.position + np.arange(self.block)) / self.rate)[:, None]
            self._callback(data, self.block, None, None)
            self.position += self.block
            if not self._is_input:
                self.played.append(data)

    def _run(self) -> None:
        began = time.perf_counter()
        while self.is_open:
            time.sleep(max(0.0, (self.position + self.block) / self.rate - (time.perf_counter() - began)))
            self.advance(time.perf_counter() - began - self._time)


class Devices(SimpleNamespace):
    """The module. `signal(seconds)` is what microphones hear; `streams` are all that were opened."""

    PortAudioError = PortAudioError

    def __init__(self, signal: Callable[[Any], Any] = np.zeros_like, by_clock: bool = False) -> None:
        self.signal, self.by_clock = signal, by_clock
        self.streams: list[Stream] = []
        self.is_broken = False

    def query_devices(self, device: Any = None, kind: str | None = None) -> Any:
        if device is None and kind is None:
            return [{"name": name} for name in NAMES]
        return {"default_samplerate": float(RATES[self._index(device, kind)][-1])}

    def check_input_settings(self, device: Any, samplerate: int, channels: int, dtype: str) -> None:
        if samplerate not in RATES[self._index(device, "input")]:
            raise PortAudioError("Invalid sample rate")

    def check_output_settings(self, device: Any, samplerate: int, channels: int, dtype: str) -> None:
        if samplerate not in RATES[self._index(device, "output")]:
            raise PortAudioError("Invalid sample rate")

    def InputStream(self, device: Any, dtype: str, **given: Any) -> Stream:
        return self._opened(True, given)

    def OutputStream(self, device: Any, dtype: str, **given: Any) -> Stream:
        return self._opened(False, given)

    def advance(self, seconds: float) -> None:
        """Let time pass for all streams."""
        for stream in self.streams:
            stream.advance(seconds)

    def _opened(self, is_input: bool, given: dict[str, Any]) -> Stream:
        if self.is_broken:
            raise PortAudioError("Device unavailable")
        self.streams.append(Stream(self, is_input, **given))
        return self.streams[-1]

    def _index(self, device: Any, kind: str | None) -> int:
        if device is None:
            return 0 if kind == "input" else 2
        found = [index for index, name in enumerate(NAMES) if device == index or str(device) in name]
        if not found:
            raise ValueError(f"No device matching {device!r}")
        return found[0]


def tone(seconds: Any, hertz: float = 440.0) -> Any:
    """A tone at these times."""
    return np.sin(2 * np.pi * hertz * np.asarray(seconds)).astype(np.float32) * 0.5
