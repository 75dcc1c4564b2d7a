"""Pictures in and out: sources for the frame loop that never make it wait, and sinks that write whole files."""

from perframe.media.feeds import Feed, Scene
from perframe.media.picture import Picture
from perframe.media.sinks import FolderSink, PictureSink, Sink, WindowSink
from perframe.media.source import Source, draw_source, open_source
from perframe.media.surfaces import SurfaceTexture
from perframe.media.video_sink import VideoSink, open_sink

__all__ = [
    "Feed",
    "FolderSink",
    "Picture",
    "PictureSink",
    "Scene",
    "Sink",
    "Source",
    "SurfaceTexture",
    "VideoSink",
    "WindowSink",
    "draw_source",
    "open_sink",
    "open_source",
]
