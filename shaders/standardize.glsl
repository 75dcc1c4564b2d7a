//@ input X
//@ input S
//@ input W
//@ input B
//@ param int size
//@ param float epsilon
//@ param ivec2 scale
//@ param ivec2 shift
//@ param int biased
//@ param int kind
// Uses the moments of each row (moments.glsl). Kind 0: the elements with mean 0 and variance 1, scaled and shifted.
// Kind 1: the mean. Kind 2: the factor that makes the variance 1.
#define TEXEL
float factor_of(int row) { return 1.0 / sqrt(S(row * 2 + 1) / float(size) + epsilon); }
ivec4 repeated(ivec4 o, ivec2 by) { return o / by.x % by.y; }
vec4 texel(int t) {
    ivec4 o = min(t * 4 + ivec4(0, 1, 2, 3), ivec4(O_size - 1));
    ivec4 row = kind == 0 ? o / size : o;
    vec4 mean = vec4(S(row.x * 2)), factor = vec4(factor_of(row.x));
    if (row.x != row.w)
        for (int k = 1; k < 4; ++k) {
            mean[k] = S(row[k] * 2);
            factor[k] = factor_of(row[k]);
        }
    if (kind != 0) return kind == 1 ? mean : factor;
    vec4 y = (X_texel(t) - mean) * factor * W_at(repeated(o, scale));
    return biased == 1 ? y + B_at(repeated(o, shift)) : y;
}
