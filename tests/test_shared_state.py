"""All mutable state that the threads of a process share, and why that is safe. New state fails the test until it has a
reason: two apps, processes of films and workers run in threads at once.
"""

from __future__ import annotations

import ast
from types import ModuleType

import pytest

from shared_state import is_constant, shared_state, type_of, written_in

IMPORTS = "filled while modules are imported, under Python's import lock, and only read after that"
LOCK = "a lock"
BY_MODEL = "a cache by weak keys: threads that miss at once make equal values, and `setdefault` keeps one of them"
CONTEXT = "a context variable: each thread, and each coroutine, has its own value"
NUMBERS = "a counter: `next` is one step of the interpreter"
ONCE = "made once, without regard to who asks"

REASONS = {
    "backends/choosing.py:_headless": "what the driver is, which stays",
    "backends/cpu/compile/compile_process.py:_writing": "of the process that compiles, which runs nothing else",
    "backends/cpu/compile/compilers.py:_compilers": "made once, under `_making`; a lock guards what they are asked",
    "backends/cpu/compile/compilers.py:_making": LOCK,
    "backends/cpu/compile/library.py:_library": ONCE,
    "backends/cpu/compile/jit.py:_linker": "native code by its names; used under `_lock`",
    "backends/cpu/compile/jit.py:_lock": LOCK,
    "backends/cpu/compile/jit.py:_parents": "grows in a forked child before it has threads",
    "backends/cpu/compile/jit.py:_pending": "its end is taken off in one step; what stays is looked at again",
    "backends/cpu/compile/jit.py:_waits": CONTEXT,
    "backends/cpu/compile/jit.py:compiled": "a note for tests: only appended to",
    "backends/cpu/program/late_program.py:_preparing": "added and removed in one step, and copied before it is read",
    "backends/cpu/program/huge_pages.py:_blocks": "a lock guards where the next part begins",
    "backends/cpu/threads/blas.py:_before": "under `_lock`",
    "backends/cpu/threads/blas.py:_inside": "under `_lock`",
    "backends/cpu/threads/blas.py:_lock": LOCK,
    "backends/cpu/threads/helpers.py:_lock": LOCK,
    "backends/cpu/threads/helpers.py:_team": "made once, under `_lock`; one program at a time reserves it",
    "backends/cpu/threads/jobs.py:_lock": LOCK,
    "backends/cpu/threads/jobs.py:_numbers": NUMBERS,
    "backends/cpu/threads/jobs.py:_pool": "made once, under `_lock`; its queue is made for threads",
    "backends/cpu/threads/jobs.py:_under_way": "added and removed in one step; only a forked child reads it",
    "backends/gl/context/devices.py:_default": "by thread, under `_sharing`",
    "backends/gl/context/device.py:_devices": "only a forked child reads it, before it has threads",
    "backends/gl/context/device.py:one_thread": LOCK,
    "backends/gl/context/devices.py:_sharing": LOCK,
    "backends/gl/replay.py:_engine": "made once, under `_lock`; its code has no state",
    "backends/gl/replay.py:_lock": LOCK,
    "backends/cpu/backend.py:_templates": BY_MODEL + "; templates have a lock of their own",
    "backends/cpu/backend.py:_rounded_templates": BY_MODEL + "; templates have a lock of their own",
    "backends/cpu/lowering/winograd.py:_all_rooms": "each step adds its own; only a forked child reads it",
    "backends/gl/replay.py:_native": "made once, under `_lock`; its code has no state",
    "command_line/cli.py:app": IMPORTS,
    "tensor/memory.py:_arrays": "under `_arrays_lock`",
    "tensor/memory.py:_arrays_lock": LOCK,
    "tensor/memory.py:ledger": "a lock guards its numbers; any thread may append to the deque of freed sizes",
    "execution/parts.py:_partitions": BY_MODEL,
    "execution/worker.py:watchers": "profiles add and remove themselves in one step; a run may miss one that ends",
    "exporters/sentis/table.py:_RULES": IMPORTS,
    "exporters/spelling.py:_RULES": IMPORTS,
    "functional/calls.py:_calling": CONTEXT,
    "graphics/headless_context.py:_process": "the id of the process, whichever thread notes it",
    "graphics/headless_context.py:making_contexts": LOCK,
    "host/coroutines.py:_timeline": CONTEXT,
    "host/event_loop.py:owner_of_code": CONTEXT,
    "importers/filling.py:_current": CONTEXT,
    "importers/adapters/__init__.py:_ADAPTERS": IMPORTS,
    "importers/litert/table.py:_TABLE": IMPORTS,
    "importers/onnx_schema.py:_table": "a table that is only read",
    "importers/sentis/table.py:_TABLE": IMPORTS,
    "ir/layer.py:_serials": NUMBERS,
    "ir/declaration.py:FOUND": "a cache: threads that miss at once find the same declaration",
    "ir/declaration.py:REGISTRY": IMPORTS,
    "importers/reads.py:_current": CONTEXT,
    "ir/report.py:_refusals": CONTEXT,
    "passes/__init__.py:_added": "each pass is added in one step, and all are copied before they are read",
    "passes/prepared.py:_known": "a cache, under `_lock`",
    "passes/prepared.py:_lock": LOCK,
    "passes/recognise/recognise_functions.py:_probes": "an array that is only read",
    "passes/recognise/recognise_norms.py:_probes": "an array that is only read",
    "plan/budget.py:_frames": NUMBERS,
    "plan/constants.py:_known": "a cache, under `_lock`",
    "plan/constants.py:_lock": LOCK,
    "plan/planner.py:_reported": "what was logged: two threads may log a fallback twice",
    "plan/refit.py:_carrying": BY_MODEL,
    "plan/tracing.py:_end_at_exit": ONCE,
    "plan/tracing.py:_waiting": "it has a lock of its own; only a forked child replaces it, before it has threads",
    "profiling/recording.py:active": "profiles that record: each adds and removes itself in one step",
    "resources.py:_folder_of_this_process": "a folder for caches: two threads that ask first at once may make two",
    "ir/sizes/names.py:NAMES": "it has no state: atoms have their own",
    "ir/sizes/names.py:_unknown": NUMBERS,
    "safety/collection.py:_caller_froze": "threads that ask at once find the same",
    "safety/collection.py:_dropped": "a threshold: threads that drop models at once may count one too few",
    "safety/collection.py:_is_paused": "a pause that another thread ends early costs only time",
    "tensor/background.py:_own": "a local of threads",
    "tensor/background.py:_threads": "a thread adds its own work in one step; only the exit reads it, as a list",
    "tensor/frames.py:_inside": "added and removed in one step; work beside frames may pause a moment too long",
    "tensor/frames.py:between": "an event, made for threads",
    "tensor/compilation.py:compiling": "counts under the lock of the process's compilers; others read it to show it",
    "tensor/compilation.py:programs": "only a warning shows it: threads that add at once may count one too few",
    "tensor/frames.py:_current": "each thread has its own",
    "tensor/frames.py:frame_watchers": "added and removed in one step, and copied before it is read",
    "tensor/guarded.py:_protect": ONCE,
    "tensor/locks.py:_all": "locks: only a forked child reads them, before it has threads",
    "tensor/placing.py:places": IMPORTS,
    "tensor/sharing.py:_locking": LOCK,
    "text/generation.py:_running": "one step sets the generation of a worker; an earlier one then raises",
}
KINDS = {
    "CField": "a field of a C struct, never changed",
    "CFunctionType": "a function of C, never changed",
    "Declaration": IMPORTS,
    "Fields": "names of words, never changed; threads that ask for their indices at once make equal ones",
    "Op": "a pattern, never changed",
    "Register": "a type of Numba, never changed",
    "Rules": "filled while its file is imported; threads that check it at once find the same",
    "object": "a mark that is compared by identity",
    "_Mark": "a mark that is compared by identity",
    "_WhileOpen": "a descriptor without state",
}


@pytest.mark.slow
def test_all_shared_state_has_a_reason() -> None:
    found = {place: type_of(value) for place, value in shared_state().items()}
    new = {place: kind for place, kind in found.items() if place not in REASONS and kind not in KINDS}
    assert not new, f"mutable state of modules or classes without a reason in this file: {new}"
    assert set(REASONS) <= set(found), f"reasons for what is no longer there: {set(REASONS) - set(found)}"
    assert set(KINDS) <= set(found.values()), f"kinds that are no longer there: {set(KINDS) - set(found.values())}"


def test_the_instrument_sees_what_functions_write() -> None:
    text = """
TABLE, SEEN, COUNT, MARK = {}, [], 0, object()
class Kept:
    names = set()
    @classmethod
    def add(cls, name): cls.names.add(name)
def look(key): return TABLE[key]
def note(x): SEEN.append(x)
def count():
    global COUNT
    COUNT += 1
def local():
    TABLE = {}
    TABLE["a"] = 1
"""
    module = ModuleType("perframe.sample")
    exec(text, vars(module))
    assert set(written_in("sample.py", module, ast.parse(text), {})) == {
        "sample.py:Kept.names",
        "sample.py:SEEN",
        "sample.py:COUNT",
    }
    assert not is_constant(module.MARK) and is_constant(module.TABLE)
