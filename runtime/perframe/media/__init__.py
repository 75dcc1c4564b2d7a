"""Pictures and sound in and out: sources for the frame loop that never make it wait, and sinks."""

from perframe.graphics.yuv import YuvFrame as YuvFrame
from perframe.media.feeds import Feed as Feed
from perframe.media.feeds import Scene as Scene
from perframe.media.ndi import NdiFeed as NdiFeed
from perframe.media.ndi import NdiSink as NdiSink
from perframe.media.picture import Picture as Picture
from perframe.media.samples import Sound as Sound
from perframe.media.sinks import FolderSink as FolderSink
from perframe.media.sinks import PictureSink as PictureSink
from perframe.media.sinks import Sink as Sink
from perframe.media.sinks import WindowSink as WindowSink
from perframe.media.sound_devices import SpeakerSink as SpeakerSink
from perframe.media.sound_source import SoundSource as SoundSource
from perframe.media.sound_source import open_sound as open_sound
from perframe.media.sound_source import read_sound as read_sound
from perframe.media.source import Source as Source
from perframe.media.source import draw_source as draw_source
from perframe.media.source import open_source as open_source
from perframe.media.surfaces import SurfaceTexture as SurfaceTexture
from perframe.media.video_sink import VideoSink as VideoSink
from perframe.media.video_sink import open_sink as open_sink
from perframe.media.virtual_camera import VirtualCameraSink as VirtualCameraSink
