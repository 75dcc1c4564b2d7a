"""Writes scikit-learn's files for the tests: python write_sklearn_files.py FOLDER. It runs in a Python that has it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

FEATURES = 4


def main(folder: Path) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((300, FEATURES)).astype(np.float32)
    classes = (x[:, 0] + x[:, 1] > 0).astype(np.int64) + (x[:, 2] > 0.5)
    numbers = x @ np.arange(1.0, FEATURES + 1) + random.standard_normal(300) / 10
    estimators = {
        "logistic": LogisticRegression().fit(x, classes),
        "linear": LinearRegression().fit(x, numbers),
        "pipeline": make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(x, classes),
        "forest": RandomForestClassifier(12, max_depth=6, random_state=0).fit(x, classes),
        "boosting": GradientBoostingRegressor(n_estimators=20, random_state=0).fit(x, numbers),
        "network": MLPClassifier((8,), max_iter=60, random_state=0).fit(x, classes),
        "vectors": SVC(random_state=0).fit(x, classes),
        "clusters": KMeans(3, n_init=2, random_state=0).fit(x),
        "scaler": MinMaxScaler().fit(x),
        "outliers": IsolationForest(n_estimators=10, random_state=0).fit(x),
        "neighbors": KNeighborsClassifier().fit(x, classes),
        "texts": LogisticRegression().fit(x, np.array(["low", "mid", "high"])[classes]),
        "function": make_pipeline(FunctionTransformer(np.log1p), LinearRegression()).fit(np.abs(x), numbers),
    }
    for name, estimator in estimators.items():
        joblib.dump(estimator, folder / f"{name}.joblib")
    for suffix, compress in (
        ("z", 3),
        ("gz", ("gzip", 3)),
        ("bz2", ("bz2", 3)),
        ("xz", ("xz", 3)),
        ("lzma", ("lzma", 3)),
    ):
        joblib.dump(estimators["forest"], folder / f"forest.{suffix}", compress=compress)
    for protocol in (2, 4, 5):
        (folder / f"pickled{protocol}.pkl").write_bytes(pickle.dumps(estimators["forest"], protocol))
    joblib.dump({"model": estimators["linear"], "note": "kept"}, folder / "mapping.joblib")
    old = LinearRegression().fit(x, numbers)
    state = old.__getstate__() | {"_sklearn_version": "1.0.2"}
    old.__class__.__getstate__ = lambda self: state  # type: ignore[method-assign]
    joblib.dump(old, folder / "old.joblib")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
