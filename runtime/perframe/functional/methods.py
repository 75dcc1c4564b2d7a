"""The methods of functional tensors: the functions whose first parameter is `input`, and Python's operators."""

from __future__ import annotations

from collections.abc import Callable

from perframe.functional import (
    activations,
    convolutions,
    detection,
    drawing,
    elementwise,
    gathering,
    logic,
    making,
    moving,
    normalization,
    pictures,
    pieces,
    pools,
    products,
    reductions,
    spectra,
    trigonometry,
)
from perframe.functional.tensor import FunctionalTensor, Given


def _reflected(called: Callable[[Given, Given], FunctionalTensor]) -> Callable[[Given, Given], FunctionalTensor]:
    """Return a function of the same operands in the other order."""

    def operator(input: Given, other: Given) -> FunctionalTensor:
        return called(other, input)

    return operator


class Methods:
    """The functions of `pf.functional` as methods: `x.softmax(1)` is `pf.functional.softmax(x, 1)`."""

    # Python's operators
    __neg__ = elementwise.neg
    __pos__ = elementwise.positive
    __abs__ = elementwise.abs_
    __invert__ = logic.bitwise_not
    __add__ = elementwise.add
    __sub__ = elementwise.sub
    __mul__ = elementwise.mul
    __truediv__ = elementwise.div
    __floordiv__ = elementwise.floor_divide
    __mod__ = elementwise.remainder
    __pow__ = elementwise.pow_
    __matmul__ = products.matmul
    __and__ = logic.bitwise_and
    __or__ = logic.bitwise_or
    __xor__ = logic.bitwise_xor
    __lshift__ = logic.bitwise_left_shift
    __rshift__ = logic.bitwise_right_shift
    __lt__ = logic.lt
    __le__ = logic.le
    __gt__ = logic.gt
    __ge__ = logic.ge
    __radd__ = _reflected(elementwise.add)
    __rsub__ = _reflected(elementwise.sub)
    __rmul__ = _reflected(elementwise.mul)
    __rtruediv__ = _reflected(elementwise.div)
    __rfloordiv__ = _reflected(elementwise.floor_divide)
    __rmod__ = _reflected(elementwise.remainder)
    __rpow__ = _reflected(elementwise.pow_)
    __rmatmul__ = _reflected(products.matmul)
    __rand__ = _reflected(logic.bitwise_and)
    __ror__ = _reflected(logic.bitwise_or)
    __rxor__ = _reflected(logic.bitwise_xor)
    __rlshift__ = _reflected(logic.bitwise_left_shift)
    __rrshift__ = _reflected(logic.bitwise_right_shift)

    def __eq__(self, other: Given) -> FunctionalTensor:  # type: ignore[override]
        return logic.eq(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: Given) -> FunctionalTensor:  # type: ignore[override]
        return logic.ne(self, other)  # type: ignore[arg-type]

    # elementwise.py
    abs = elementwise.abs_
    absolute = elementwise.absolute
    add = elementwise.add
    ceil = elementwise.ceil
    clamp = elementwise.clamp
    clip = elementwise.clip
    div = elementwise.div
    divide = elementwise.divide
    erf = elementwise.erf
    exp = elementwise.exp
    exp2 = elementwise.exp2
    expm1 = elementwise.expm1
    fix = elementwise.fix
    float_power = elementwise.float_power
    floor = elementwise.floor
    floor_divide = elementwise.floor_divide
    fmod = elementwise.fmod
    frac = elementwise.frac
    lerp = elementwise.lerp
    log = elementwise.log
    log10 = elementwise.log10
    log1p = elementwise.log1p
    log2 = elementwise.log2
    logaddexp = elementwise.logaddexp
    maximum = elementwise.maximum
    minimum = elementwise.minimum
    mul = elementwise.mul
    multiply = elementwise.multiply
    neg = elementwise.neg
    negative = elementwise.negative
    positive = elementwise.positive
    pow = elementwise.pow_
    reciprocal = elementwise.reciprocal
    remainder = elementwise.remainder
    round = elementwise.round_
    rsqrt = elementwise.rsqrt
    sigmoid = elementwise.sigmoid
    sign = elementwise.sign
    sqrt = elementwise.sqrt
    square = elementwise.square
    sub = elementwise.sub
    subtract = elementwise.subtract
    true_divide = elementwise.true_divide
    trunc = elementwise.trunc

    # trigonometry.py
    acos = trigonometry.acos
    acosh = trigonometry.acosh
    arccos = trigonometry.arccos
    arccosh = trigonometry.arccosh
    arcsin = trigonometry.arcsin
    arcsinh = trigonometry.arcsinh
    arctan = trigonometry.arctan
    arctan2 = trigonometry.arctan2
    arctanh = trigonometry.arctanh
    asin = trigonometry.asin
    asinh = trigonometry.asinh
    atan = trigonometry.atan
    atan2 = trigonometry.atan2
    atanh = trigonometry.atanh
    cos = trigonometry.cos
    cosh = trigonometry.cosh
    deg2rad = trigonometry.deg2rad
    hypot = trigonometry.hypot
    rad2deg = trigonometry.rad2deg
    sin = trigonometry.sin
    sinh = trigonometry.sinh
    tan = trigonometry.tan
    tanh = trigonometry.tanh

    # logic.py
    bitwise_and = logic.bitwise_and
    bitwise_left_shift = logic.bitwise_left_shift
    bitwise_not = logic.bitwise_not
    bitwise_or = logic.bitwise_or
    bitwise_right_shift = logic.bitwise_right_shift
    bitwise_xor = logic.bitwise_xor
    bool = logic.bool_
    double = logic.double
    eq = logic.eq
    equals = logic.equals
    float = logic.float_
    ge = logic.ge
    greater = logic.greater
    greater_equal = logic.greater_equal
    gt = logic.gt
    half = logic.half
    int = logic.int_
    isfinite = logic.isfinite
    isinf = logic.isinf
    isnan = logic.isnan
    le = logic.le
    less = logic.less
    less_equal = logic.less_equal
    logical_and = logic.logical_and
    logical_not = logic.logical_not
    logical_or = logic.logical_or
    logical_xor = logic.logical_xor
    long = logic.long
    lt = logic.lt
    nan_to_num = logic.nan_to_num
    ne = logic.ne
    not_equal = logic.not_equal
    to = logic.to
    type = logic.type_
    type_as = logic.type_as

    # activations.py
    celu = activations.celu
    dropout = activations.dropout
    elu = activations.elu
    gelu = activations.gelu
    glu = activations.glu
    hardshrink = activations.hardshrink
    hardsigmoid = activations.hardsigmoid
    hardswish = activations.hardswish
    hardtanh = activations.hardtanh
    leaky_relu = activations.leaky_relu
    log_softmax = activations.log_softmax
    logsigmoid = activations.logsigmoid
    mish = activations.mish
    prelu = activations.prelu
    relu = activations.relu
    relu6 = activations.relu6
    selu = activations.selu
    silu = activations.silu
    softmax = activations.softmax
    softmin = activations.softmin
    softplus = activations.softplus
    softshrink = activations.softshrink
    softsign = activations.softsign
    swish = activations.swish
    tanhshrink = activations.tanhshrink
    threshold = activations.threshold

    # reductions.py
    all = reductions.all_
    amax = reductions.amax
    amin = reductions.amin
    any = reductions.any_
    argmax = reductions.argmax
    argmin = reductions.argmin
    argsort = reductions.argsort
    count_nonzero = reductions.count_nonzero
    cumprod = reductions.cumprod
    cumsum = reductions.cumsum
    logsumexp = reductions.logsumexp
    max = reductions.max_
    mean = reductions.mean
    min = reductions.min_
    norm = reductions.norm
    normalize = reductions.normalize
    prod = reductions.prod
    reduce_l1 = reductions.reduce_l1
    reduce_l2 = reductions.reduce_l2
    reduce_log_sum_exp = reductions.reduce_log_sum_exp
    reduce_max = reductions.reduce_max
    reduce_mean = reductions.reduce_mean
    reduce_min = reductions.reduce_min
    reduce_prod = reductions.reduce_prod
    reduce_sum = reductions.reduce_sum
    reduce_sum_square = reductions.reduce_sum_square
    reduce_variance = reductions.reduce_variance
    sort = reductions.sort
    std = reductions.std
    std_mean = reductions.std_mean
    sum = reductions.sum_
    topk = reductions.topk
    var = reductions.var
    var_mean = reductions.var_mean

    # moving.py
    broadcast_to = moving.broadcast_to
    expand = moving.expand
    expand_as = moving.expand_as
    flatten = moving.flatten
    moveaxis = moving.moveaxis
    movedim = moving.movedim
    numel = moving.numel
    permute = moving.permute
    ravel = moving.ravel
    repeat = moving.repeat
    repeat_interleave = moving.repeat_interleave
    reshape = moving.reshape
    size = moving.size
    squeeze = moving.squeeze
    swapaxes = moving.swapaxes
    swapdims = moving.swapdims
    t = moving.t
    tile = moving.tile
    transpose = moving.transpose
    unflatten = moving.unflatten
    unsqueeze = moving.unsqueeze
    view = moving.view

    # pieces.py
    as_strided = pieces.as_strided
    chunk = pieces.chunk
    clone = pieces.clone
    diagonal = pieces.diagonal
    flip = pieces.flip
    fliplr = pieces.fliplr
    flipud = pieces.flipud
    narrow = pieces.narrow
    pad = pieces.pad
    roll = pieces.roll
    select = pieces.select
    split = pieces.split
    tril = pieces.tril
    triu = pieces.triu
    unbind = pieces.unbind

    # gathering.py
    argwhere = gathering.argwhere
    embedding = gathering.embedding
    gather = gathering.gather
    index_add = gathering.index_add
    index_select = gathering.index_select
    masked_fill = gathering.masked_fill
    masked_select = gathering.masked_select
    nonzero = gathering.nonzero
    scatter = gathering.scatter
    scatter_add = gathering.scatter_add
    scatter_reduce = gathering.scatter_reduce
    select_scatter = gathering.select_scatter
    slice_scatter = gathering.slice_scatter
    take = gathering.take
    take_along_dim = gathering.take_along_dim
    unique = gathering.unique

    # making.py
    full_like = making.full_like
    ones_like = making.ones_like
    zeros_like = making.zeros_like

    # drawing.py
    bernoulli = drawing.bernoulli
    multinomial = drawing.multinomial
    rand_like = drawing.rand_like
    randint_like = drawing.randint_like
    randn_like = drawing.randn_like
    random_choice = drawing.random_choice

    # products.py
    addbmm = products.addbmm
    addmm = products.addmm
    baddbmm = products.baddbmm
    bmm = products.bmm
    det = products.det
    dot = products.dot
    inner = products.inner
    linear = products.linear
    matmul = products.matmul
    mm = products.mm
    mv = products.mv
    outer = products.outer

    # convolutions.py
    conv1d = convolutions.conv1d
    conv2d = convolutions.conv2d
    conv3d = convolutions.conv3d
    conv_transpose1d = convolutions.conv_transpose1d
    conv_transpose2d = convolutions.conv_transpose2d
    conv_transpose3d = convolutions.conv_transpose3d

    # pools.py
    adaptive_avg_pool1d = pools.adaptive_avg_pool1d
    adaptive_avg_pool2d = pools.adaptive_avg_pool2d
    adaptive_avg_pool3d = pools.adaptive_avg_pool3d
    adaptive_max_pool1d = pools.adaptive_max_pool1d
    adaptive_max_pool2d = pools.adaptive_max_pool2d
    adaptive_max_pool3d = pools.adaptive_max_pool3d
    avg_pool1d = pools.avg_pool1d
    avg_pool2d = pools.avg_pool2d
    avg_pool3d = pools.avg_pool3d
    lp_pool1d = pools.lp_pool1d
    lp_pool2d = pools.lp_pool2d
    lp_pool3d = pools.lp_pool3d
    max_pool1d = pools.max_pool1d
    max_pool2d = pools.max_pool2d
    max_pool3d = pools.max_pool3d
    max_unpool1d = pools.max_unpool1d
    max_unpool2d = pools.max_unpool2d
    max_unpool3d = pools.max_unpool3d

    # normalization.py
    batch_norm = normalization.batch_norm
    group_norm = normalization.group_norm
    instance_norm = normalization.instance_norm
    layer_norm = normalization.layer_norm
    local_response_norm = normalization.local_response_norm
    rms_norm = normalization.rms_norm

    # pictures.py
    channel_shuffle = pictures.channel_shuffle
    fold = pictures.fold
    grid_sample = pictures.grid_sample
    interpolate = pictures.interpolate
    pixel_shuffle = pictures.pixel_shuffle
    pixel_unshuffle = pictures.pixel_unshuffle
    unfold = pictures.unfold
    upsample = pictures.upsample

    # spectra.py
    mel_spectrogram = spectra.mel_spectrogram
    stft = spectra.stft
    whisper_spectrogram = spectra.whisper_spectrogram

    # detection.py
    roi_align = detection.roi_align


def give_methods() -> None:
    """Put the methods into FunctionalTensor, whose module the functions import and so cannot import them."""
    for name, method in vars(Methods).items():
        if callable(method):
            setattr(FunctionalTensor, name, method)
