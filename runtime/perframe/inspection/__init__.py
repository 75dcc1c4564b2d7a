"""A look into models: facts about layers, values and constants, and a page that draws them as a graph."""

from perframe.inspection.facts import ModelFacts, inspect

__all__ = ["ModelFacts", "inspect"]
