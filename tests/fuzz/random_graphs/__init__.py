"""Random valid graphs, whose results onnxruntime knows."""

from fuzz.random_graphs.campaign import FAILURES, campaign

__all__ = ["FAILURES", "campaign"]
