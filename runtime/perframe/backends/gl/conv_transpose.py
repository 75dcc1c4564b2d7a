"""Transposed convolution on GL."""

from perframe.backends.gl.conv import lower as lower
from perframe.backends.gl.conv import supports as supports
