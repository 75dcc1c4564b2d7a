"""Pictures in and out: sources for the frame loop that never make it wait, and sinks that write whole files."""

from perframe.media.feeds import Feed as Feed
from perframe.media.feeds import Scene as Scene
from perframe.media.picture import Picture as Picture
from perframe.media.sinks import FolderSink as FolderSink
from perframe.media.sinks import PictureSink as PictureSink
from perframe.media.sinks import Sink as Sink
from perframe.media.sinks import WindowSink as WindowSink
from perframe.media.source import Source as Source
from perframe.media.source import draw_source as draw_source
from perframe.media.source import open_source as open_source
from perframe.media.surfaces import SurfaceTexture as SurfaceTexture
from perframe.media.video_sink import VideoSink as VideoSink
from perframe.media.video_sink import open_sink as open_sink
