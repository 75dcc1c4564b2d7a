"""The plans of one part of a model, by input shapes: which of them stay, and which go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perframe.plan.plan import Plan
from perframe.tensor.memory import ledger

MAX_PLANS = 8  # of one part; the plan that was unused for longest is freed


class PlanCache(dict[Any, Plan]):
    """Plans by keys, the one that ran last at the end: that is `last`.

    A dict, since an OrderedDict hashes each key again when it is iterated, and a key has the shapes of all inputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last: Plan | None = None
        self.evicted: list[Plan] = []  # plans to free when their last runs are over
        self.is_fitting = False  # whether a plan may be getting other shapes, so that none may go

    def next(self, key: Any) -> Plan | None:
        """Return the plan for a key, which runs next; None if there is none."""
        plan = self.get(key)
        if plan is not None and plan is not self.last:
            self[key] = self.pop(key)
            self._use(plan)
        return plan

    def _use(self, plan: Plan) -> None:
        if self.last is not None:
            self.last.used = next(ledger.uses)
        self.last = plan

    def fit(self, key: Any, fitted: Callable[[Sequence[Plan]], Plan | None], never_again: bool) -> Plan | None:
        """Return the plan that `fitted` makes, and keep it for a key. The function gets the plans to which it may give
        other shapes: the oldest, which would be freed, or all but the last if a set of input shapes comes
        `never_again`.
        """
        spare: Sequence[Plan] = ()
        if never_again or len(self) >= MAX_PLANS:
            spare = list(self.values())[: -1 if never_again else 1]
        self.is_fitting = True
        try:
            plan = fitted(spare)
        finally:
            self.is_fitting = False
        if plan is not None:
            self.move(plan, key)
        return plan

    def move(self, plan: Plan, key: Any) -> None:
        """Keep a plan for another key: it was resized, or is new."""
        if plan is self.last and not self.evicted:  # as in most frames with new shapes
            self.popitem()
            self.pop(key, None)
            self[key] = plan
            return
        for other in [other for other, known in self.items() if known is plan]:
            del self[other]
        self.evicted = [evicted for evicted in self.evicted if evicted is not plan]
        self.pop(key, None)
        self[key] = plan
        self._use(plan)
        self.evict_old()

    def hide(self, plan: Plan) -> None:
        """Let no shapes find the last plan, which gets other shapes with each run."""
        if plan not in self:
            self.move(plan, plan)

    def evict_all(self) -> None:
        """Evict all plans: the next run takes a template's plan, or is planned again."""
        self.evicted += self.values()
        self.clear()
        self.last = None

    def evict_old(self) -> None:
        """Free the plan that was unused for longest once its runs are over. Never blocks."""
        if len(self) > MAX_PLANS:
            self.evicted.append(self.pop(next(iter(self))))
        for plan in [plan for plan in self.evicted if not plan.is_busy]:
            self.evicted.remove(plan)
            plan.release()

    def drop_last(self) -> None:
        """Free the last plan, which never ran."""
        self.popitem()[1].release()
        self.last = next(reversed(self.values()), None)

    # --- memory ---

    def _droppable(self) -> Iterator[tuple[Any, Plan]]:
        """The plans that may go, the oldest first, with their keys: not the last one, and none that runs."""
        plans = () if self.is_fitting else [*self.items()][:-1]
        return ((key, plan) for key, plan in plans if not plan.is_busy)

    @property
    def oldest(self) -> int | None:
        """When the oldest plan that may go was used; None if none may."""
        return next((plan.used for _, plan in self._droppable()), None)

    def drop_oldest(self) -> bool:
        """Drop that plan. Return whether there was one."""
        for key, plan in self._droppable():
            del self[key]
            plan.release()
            return True
        return False

    def free_spare(self) -> None:
        """Free the memory that plans keep for readbacks, and plans that waited for runs."""
        for plan in self.values():
            plan.free_spare()
        self.evict_old()

    def held(self, seen: set[int]) -> tuple[int, int]:
        """The bytes of the plan that ran last, and of all others, apart from objects in `seen`."""
        first = 0 if self.last is None else self.last.held(seen)
        return first, sum(plan.held(seen) for plan in (*self.values(), *self.evicted))

    def taken(self) -> Sequence[Plan]:
        """Take all plans out, to be freed."""
        plans = *self.values(), *self.evicted
        self.clear()
        self.evicted.clear()
        self.last = None
        return plans
