"""Passes that choose the order of dims in memory."""

from perframe.passes.layout import channel_blocks, channels_last, move_channels

__all__ = ["channel_blocks", "channels_last", "move_channels"]
