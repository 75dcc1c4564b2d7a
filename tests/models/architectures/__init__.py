"""Architectures that the tests make themselves: modules from their configs, with seeded random weights."""

from models.architectures import language, sound, timm_models, torchvision_models, vision

KINDS = (language, vision, sound, timm_models, torchvision_models)
ARCHITECTURES = {one.name: one for kind in KINDS for one in kind.ARCHITECTURES}
