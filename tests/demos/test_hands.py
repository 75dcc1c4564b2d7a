"""Hands: followed through a film with known joints on each backend, and on a GPU nothing is read back."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.backends.gl.storage.storage import GLStorage
from perframe.command_line.commands.demo import load_demo
from perframe.host import App, ManualClock
from perframe.tensor import frames

SIZE, RATE = (640, 360), 30
SETTLED = 30  # pictures after which a still hand counts


def part(name: str, package: str = "hands") -> Any:
    load_demo("hands")
    return import_module(f"perframe_demos.{package}.{name}")


def count_transfers(patch: pytest.MonkeyPatch, transfers: list[str]) -> None:
    """List what a GPU would read back or wait for while the patch lasts."""

    def note(name: str) -> Any:
        return lambda *_: transfers.append(name)

    patch.setattr(type(frames.current_frame()), "blocking", note("blocking"))
    for name in ("download", "request"):
        assert hasattr(GLStorage, name)
        for kind in (GLStorage, *GLStorage.__subclasses__()):
            patch.setattr(kind, name, note(name))


class Follower:
    """Runs the chain on pictures, and counts what a GPU would read back or wait for."""

    def __init__(self, backend: str, ctx: Any, monkeypatch: pytest.MonkeyPatch, **files: Path) -> None:
        self.is_gl = backend != "cpu"
        self.chain = part("chain").HandChain(backend, ctx if self.is_gl else None, SIZE, **files)
        self.texture = ctx.texture(SIZE, 3) if self.is_gl else None
        self.transfers: list[str] = []
        self._patch = monkeypatch

    def __call__(self, pixels: Any, seconds: float = 1 / RATE) -> tuple[Any, Any]:
        """The points (hands, 21, 2) and scores (hands,) of a picture."""
        if self.texture is not None:
            self.texture.write(pixels.tobytes())
        given = pixels if self.texture is None else self.texture
        with self._patch.context() as patch:
            if self.is_gl and self.chain.pictures >= 2:
                count_transfers(patch, self.transfers)
            seen = self.chain.landmarks(given, self.chain.regions(given), seconds)
        return seen.points.numpy(), seen.scores.numpy()

    def release(self) -> None:
        self.chain.release()
        if self.texture is not None:
            self.texture.release()


class Watched(NamedTuple):
    """A hand in a picture: whether all its joints lie within, its row or -1, and how far off its joints are."""

    is_whole: bool
    row: int
    off: float


def watched(joints: Any, points: Any, scores: Any, palm: float) -> Watched:
    """The row whose joints are nearest to a hand's, if they are within a palm; `off` is the mean in stretched hands."""
    away = np.linalg.norm(points - joints, axis=2).mean(1)
    away[scores <= 0.5] = np.inf
    row = int(away.argmin())
    is_whole = bool(((joints > 0) & (joints < SIZE)).all())
    is_found = bool(away[row] < palm)
    return Watched(is_whole, row if is_found else -1, float(away[row]) / (palm * part("drawn").LENGTH))


@pytest.mark.slow
def test_hands_are_followed_through_a_film(backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of the film. An error is the mean distance of 21 joints as a share of a stretched hand, wrist to tip."""
    film = part("film")
    draw, follow = film.HandFilm(SIZE), Follower(backend, backend_context, monkeypatch)
    palm, hands = film.PALM * SIZE[1], len(film.BUILDS)
    seen: list[list[Watched]] = [[] for _ in range(hands)]
    for index in range(int(film.LOOP * RATE)):
        points, scores = follow(draw(index / RATE))
        for hand, joints in enumerate(draw.joints):
            seen[hand].append(watched(joints, points, scores, palm))
    looks, pictures, transfers = follow.chain.looks, follow.chain.pictures, follow.transfers
    follow.release()
    each = [[one.off for one in hand if one.is_whole and one.row >= 0] for hand in seen]
    means, worst = [float(np.mean(off)) for off in each], float(np.max(np.concatenate(each)))
    late = [sum(one.is_whole and one.row < 0 for one in hand) for hand in seen]
    print(f"{backend}: off {np.mean(np.concatenate(each)):.3%}, each {means}, worst {worst:.2%}, late {late}")
    assert not transfers, "nothing is read back, and nothing waits"
    assert looks < 0.1 * pictures
    assert max(means) < 0.02, "the dark hand and the light one"
    assert max(late) <= part("chain").EVERY, "a hand that comes back waits for the next look"
    assert any(not one.is_whole for one in seen[0]), "a hand leaves the picture"
    rows = [{one.row for one in hand if one.row >= 0} for hand in seen]
    assert sorted(map(sorted, rows)) == [[0], [1]], "each hand has one row, also after it was away"


@pytest.mark.slow  # its shaders are many
@pytest.mark.parametrize("gl_backend", ["gpu_compute", "gpu_pixel"])
def test_the_ball_and_the_marks_stay_on_the_gpu_too(
    gl_backend: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gl_backend == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    options, transfers = Namespace(source=None, detector=None, landmarks=None), list[str]()
    with App((320, 180), headless=True, clock=ManualClock(1 / 20), stop_on_error=True) as app:
        stage = part("stage", "common").Stage(pf.BackendType(gl_backend), app.ctx, True, options)
        script = app.add(part("view").HandsView(stage))
        for _ in range(3):
            app.loop_once()
        with monkeypatch.context() as patch:
            count_transfers(patch, transfers)
            for _ in range(15):  # with a look of the detector
                app.loop_once()
        assert not transfers
        assert script.chain.pictures >= 16 and script.chain.looks == 2
        assert (script.shown.marks["scores"].numpy() > 0.5).all()


@pytest.mark.slow
def test_a_still_hand_does_not_jitter(backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a camera's noise, no joint is ever more than half a pixel from its mean place."""
    random, follow = np.random.default_rng(0), Follower(backend, backend_context, monkeypatch)
    still = part("film").HandFilm(SIZE)(0.7).astype(np.float32)
    places = []
    for index in range(3 * SETTLED):
        noisy = np.clip(np.rint(still + random.normal(0, 2.5, still.shape)), 0, 255).astype(np.uint8)
        points, scores = follow(noisy)
        if index >= SETTLED:
            places.append(points)
    follow.release()
    away = np.linalg.norm(np.array(places) - np.mean(places, 0), axis=-1)
    print(f"{backend}: at most {away.max():.3f} pixels, {np.sqrt((away**2).mean()):.3f} rms")
    assert (scores > 0.5).all() and away.max() < 0.5


def test_a_row_that_comes_upon_another_hand_ends() -> None:
    networks = part("networks")
    graph = pf.FunctionalGraph("alone")
    regions, scores = graph.add_input("float32", (2, 5), "regions"), graph.add_input("float32", (2,), "scores")
    model = graph.compile(left=networks.alone(regions, scores))
    near = np.array([[100, 100, 80, 80, 0], [110, 100, 80, 80, 0]], np.float32)
    for given, wanted in (((0.9, 0.8), (0.9, 0.0)), ((0.3, 0.8), (0.3, 0.8))):
        left = pf.run(model, {"regions": near, "scores": np.array(given, np.float32)})["left"]
        np.testing.assert_allclose(left, wanted, rtol=1e-6)
    apart = near + np.array([[0] * 5, [60, 0, 0, 0, 0]], np.float32)
    left = pf.run(model, {"regions": apart, "scores": np.array([0.9, 0.8], np.float32)})["left"]
    np.testing.assert_allclose(left, (0.9, 0.8), rtol=1e-6)


def test_a_pinch_carries_the_ball(backend: str, backend_context: Any) -> None:
    ball = part("ball")
    points, scores, step = (
        np.zeros((2, 21, 2), np.float32),
        np.array([0.9, 0.9], np.float32),
        np.array([0.1], np.float32),
    )
    points[:, 9] = 0, -100  # palms of 100 pixels
    points[1, :] += 5000

    def held(x: float, y: float, gap: float) -> None:
        points[0, 4], points[0, 8] = (x - gap / 2, y), (x + gap / 2, y)

    def moved(worker: pf.Worker) -> Any:
        return worker.schedule({"points": points, "scores": scores, "seconds": step}).peek_output("ball").numpy()[0]

    carry = {"new_state": "state", "new_trail": "trail"}
    with pf.Worker(ball.ball_model(SIZE), backend, backend_context, carry=carry) as worker:
        worker.reset(ball.beginning(SIZE))
        held(320, 300, 5)  # too far away
        np.testing.assert_allclose(moved(worker), (320, 180), atol=1e-3)
        held(330, 190, 80)  # near, but open
        np.testing.assert_allclose(moved(worker), (320, 180), atol=1e-3)
        held(330, 190, 10)
        np.testing.assert_allclose(moved(worker), (330, 190), atol=1e-3)
        for x in (340, 350, 360, 370, 380, 390, 400, 410):  # 100 pixels a second; between closed and open it holds
            held(x, 190, 40)
            np.testing.assert_allclose(moved(worker), (x, 190), atol=1e-3)
        held(420, 190, 80)
        flown = moved(worker)
        assert 410 + 8 < flown[0] <= 410 + 10.5, "it flies on"
        trail = worker.peek_output("new_trail").numpy()[0]
        np.testing.assert_allclose(trail[:2], [flown, (410, 190)], atol=1e-2)
        scores[0] = 0.1  # what is no hand does not pinch
        held(*flown.tolist(), 0)
        assert moved(worker)[0] > flown[0] + 5


def test_the_ball_bounces_off_the_edges() -> None:
    ball = part("ball")
    points, scores = np.zeros((2, 21, 2), np.float32), np.zeros(2, np.float32)
    given = {"points": points, "scores": scores, "seconds": np.array([0.1], np.float32)}
    state = np.array([630, 5, 300, -100, 0, 0], np.float32)
    made = pf.run(ball.ball_model(SIZE), {**given, "state": state, "trail": ball.beginning(SIZE)["trail"]})
    np.testing.assert_allclose(made["ball"][0], (640, 0))
    slower = np.exp(-0.1 * ball.DRAG)
    np.testing.assert_allclose(made["new_state"][2:4], (-300 * slower, 100 * slower), rtol=1e-5)


def test_the_hands_of_the_film_pass_the_ball_to_each_other() -> None:
    ball, film, drawn = part("ball"), part("film"), part("drawn")
    draw, holders = film.HandFilm(SIZE), list[tuple[bool, ...]]()
    with pf.Worker(ball.ball_model(SIZE), carry={"new_state": "state", "new_trail": "trail"}) as worker:
        worker.reset(ball.beginning(SIZE))
        for index in range(int(2 * film.LOOP * 20)):
            hands = [drawn.joints_of(build, draw.hold(at, index / 20)) for at, build in enumerate(film.BUILDS)]
            points = np.stack(hands)[..., :2].astype(np.float32)
            given = {"points": points, "scores": np.ones(2, np.float32), "seconds": np.array([0.05], np.float32)}
            held = tuple((worker.schedule(given).peek_output("new_state").numpy()[4:] > 0).tolist())
            if not holders or holders[-1] != held:
                holders.append(held)
    assert holders == [(False, False), (True, False), (False, False), (False, True)] * 2 + [(False, False)]


@pytest.mark.slow  # on a cold cache
def test_it_writes_a_picture_of_a_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    Image.fromarray(part("film").HandFilm((480, 270))(1.0)).save(tmp_path / "seen.png")
    out = tmp_path / "hands.png"
    argv = ["--headless", "--backend", backend, "--frames", "3", "--save", str(out)]
    assert load_demo("hands")([*argv, "--source", str(tmp_path / "seen.png")]) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    plain = np.asarray(Image.open(tmp_path / "seen.png").resize((1280, 720))).astype(int)
    marked = np.abs(drawn - plain).sum(2)[100:] > 200
    assert 0.01 < marked.mean() < 0.1  # two skeletons and the ball
