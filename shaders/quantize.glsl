//@ input X elements if not OF_TENSOR, texels if OF_TENSOR
//@ input S
//@ input Z
//@ param int size
//@ param int inner
//@ param int block
//@ param ivec4 steps
//@ param int has_zero
//@ param ivec2 range
//@ unit element, texel if OF_TENSOR
// Dequantization is (x - zero) * scale. Quantization is the inverse, and rounds halves to even. There is one scale for
// the tensor (OF_TENSOR), one for each index of an axis, or one for each block of it.
#define DEQUANTIZED(value, scale, zero) (float(int(value) - (zero)) * (scale))
#define QUANTIZED(value, scale, zero) int(min(max(round_even(float(value) / (scale)) + float(zero), float(range.x)), float(range.y)))
#ifdef OF_TENSOR
O_VECTOR texel(int t) {
    int zero = has_zero == 1 ? int(Z(0)) : 0;
    O_VECTOR result;
    for (int k = 0; k < 4; ++k) result[k] = SCALED(X_texel(t)[k], S(0), zero);
    return result;
}
#else
O_TYPE element(int o) {
    int i = o % inner, rest = o / inner;
    int at = rest / size * steps.x + rest % size / block * steps.y + i * steps.z;
    return SCALED(X(o), S(at), (has_zero == 1 ? int(Z(at)) : 0));
}
#endif
