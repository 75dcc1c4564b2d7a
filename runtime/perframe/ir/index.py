"""The file of `layers/` that declares each operator, and all families. Written by tools/index_operators.py."""

LAYERS = {
    "activation": (
        "Celu Clip Elu FakeQuantize Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink Sigmoid Softplus "
        "Softsign Swish ThresholdedRelu"
    ),
    "attention": "DotProductAttention LinearAttention",
    "bits": "BitCast",
    "block_conv": "BlockConv",
    "blocks": "BlocksToSpace FromBlocks ShuffleBlocks ToBlocks",
    "col2im": "Col2Im",
    "control": "If Loop Scan",
    "conv": "Conv ConvTranspose",
    "cumulative": "CumProd CumSum",
    "deform_conv": "DeformConv",
    "drop": "Dropout TrainingDropout",
    "einsum": "Einsum",
    "elementwise": (
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr "
        "BitwiseXor Cast Ceil Cos Cosh Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual "
        "Log Max Min Mod Mul MultiplyAdd Neg Not Or Pow Reciprocal Round Sign Sin Sinh Sqrt Sub Tan Tanh Where Xor"
    ),
    "extract": "Compress FilledRows NonZero Unique",
    "gather": "Gather GatherElements GatherND",
    "grams": "TfIdfVectorizer",
    "grid": "AffineGrid GridSample",
    "image": "ImageDecoder",
    "join": "Concat",
    "labels": "LabelEncoder",
    "linalg": "Det",
    "make": "BlackmanWindow EyeLike HammingWindow HannWindow OneHot Trilu",
    "matmul": "Gemm MatMul",
    "move": (
        "Copy DepthToSpace Expand Flatten Identity Reshape Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze"
    ),
    "nms": "PickBoxes SuppressNonMaxima",
    "norm": "LRN LogSoftmax Softmax",
    "packed": "PackedGather PackedMatMul",
    "pad": "Pad",
    "pool": "AveragePool LpPool MaxPool MaxUnpool",
    "quantize": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "quantized": "QuantizedConv QuantizedMatMul",
    "random": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "recurrent": "GRU LSTM QuantizedLSTM RNN",
    "reduce": (
        "GlobalAveragePool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    "requantize": "LookUp QuantizedAdd QuantizedMean",
    "resize": "Resize",
    "reverse": "ReverseSequence",
    "roi": "RoiAlign",
    "roi_pool": "MaxRoiPool",
    "rotary": "RotatePairs",
    "scatter": "ScatterElements ScatterND TensorScatter",
    "select": "ArgMax ArgMin Hardmax TopK",
    "sequence": (
        "ConcatFromSequence Optional OptionalGetElement OptionalHasElement Pass SequenceAt SequenceConstruct "
        "SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence"
    ),
    "shape": "ConstantOfShape Range Shape Size SizeValues",
    "spectral": "DFT MelWeightMatrix STFT",
    "standardize": "GroupNormalization InstanceNormalization LayerNormalization RMSNormalization",
    "text": "RegexFullMatch StringConcat StringNormalizer StringSplit",
    "trees": "TreeEnsemble",
}
FAMILIES = frozenset({*LAYERS, "conv_transpose"})
FILE_OF = {operator: stem for stem, operators in LAYERS.items() for operator in operators.split()}
