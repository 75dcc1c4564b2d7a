"""Keep a model encrypted on disk. Needs the extra `encryption`."""

from __future__ import annotations

import secrets

import perframe as pf
from perframe.resources import resource

key = secrets.token_bytes(32)  # keep it elsewhere; a pass phrase works too
pf.save(pf.load(resource("assets", "painter", "painter.onnx")), "painter.perframe", key=key)

model = pf.load("painter.perframe", key=key)
print("with the key:", len(model.layers), "layers")
try:
    pf.load("painter.perframe", key=secrets.token_bytes(32))
except pf.ModelError as error:
    print("with another key:", error)
