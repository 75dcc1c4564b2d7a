"""The operators that each file of `importers/adapters/` adapts. Written by tools/index_operators.py."""

ADAPTERS = {
    "basic": (
        "Add And Cast CastLike Clip Constant Div Equal Gemm Greater Hardmax Less LogSoftmax Max Mean Min Mul Or PRelu "
        "Pad Pow ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare Reshape Resize Slice Softmax Split Squeeze Sub Sum Unsqueeze Upsample Xor"
    ),
    "classical": (
        "ai.onnx.ml::ArrayFeatureExtractor ai.onnx.ml::Binarizer ai.onnx.ml::LabelEncoder ai.onnx.ml::Scaler "
        "ai.onnx.ml::TreeEnsemble"
    ),
    "contrib": (
        "com.microsoft::BiasAdd com.microsoft::BiasGelu com.microsoft::BiasSplitGelu com.microsoft::ExpandDims "
        "com.microsoft::FastGelu com.microsoft::FusedConv com.microsoft::FusedGemm com.microsoft::FusedMatMul "
        "com.microsoft::FusedMatMulActivation com.microsoft::Gelu com.microsoft::Inverse com.microsoft::NhwcConv "
        "com.microsoft::NhwcFusedConv com.microsoft::Pad com.microsoft::QuickGelu com.microsoft::TransposeMatMul "
        "com.microsoft::Trilu com.microsoft::Unique"
    ),
    "contrib_attention": (
        "com.microsoft::Attention com.microsoft::CausalConvWithState com.microsoft::LinearAttention "
        "com.microsoft::MultiHeadAttention com.microsoft::RotaryEmbedding"
    ),
    "contrib_cache": "com.microsoft::GroupQueryAttention",
    "contrib_norm": (
        "SimplifiedLayerNormalization com.microsoft::EmbedLayerNormalization com.microsoft::GroupNorm "
        "com.microsoft::LayerNormalization com.microsoft::SimplifiedLayerNormalization com.microsoft::SkipGroupNorm "
        "com.microsoft::SkipLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization"
    ),
    "contrib_quantized": (
        "com.microsoft::DequantizeLinear com.microsoft::DynamicQuantizeLSTM com.microsoft::DynamicQuantizeMatMul "
        "com.microsoft::GatherBlockQuantized com.microsoft::MatMulIntegerToFloat com.microsoft::MatMulNBits "
        "com.microsoft::QGemm com.microsoft::QLinearAdd com.microsoft::QLinearAveragePool "
        "com.microsoft::QLinearConcat com.microsoft::QLinearConv com.microsoft::QLinearGlobalAveragePool "
        "com.microsoft::QLinearLeakyRelu com.microsoft::QLinearMul com.microsoft::QLinearSigmoid "
        "com.microsoft::QLinearSoftmax com.microsoft::QLinearWhere com.microsoft::QuantizeLinear"
    ),
    "control": "Identity Optional Scan SequenceEmpty",
    "indexing": "GridSample RoiAlign Scatter",
    "nms": "NonMaxSuppression",
    "quantized": "ConvInteger DequantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear",
    "selection": (
        "BatchNormalization BitCast BlackmanWindow Dropout EyeLike GlobalLpPool GroupNormalization HammingWindow "
        "HannWindow LayerNormalization LpNormalization MeanVarianceNormalization RMSNormalization TopK"
    ),
    "series": (
        "Bernoulli DFT GRU LSTM MelWeightMatrix Multinomial RNN RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike StringNormalizer"
    ),
}
