"""Transposed convolution on GL."""

from perframe.backends.gl.families.conv import lower as lower
from perframe.backends.gl.families.conv import supports as supports
