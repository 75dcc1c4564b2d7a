//@ input X texels
//@ input S texels
//@ input W elements texels
//@ input B elements texels
//@ param int size
//@ param int rows
//@ param float epsilon
//@ param ivec2 scale
//@ param ivec2 shift
//@ param int biased
//@ param int kind
//@ unit texel
// Uses the moments of each row (moments.glsl). Kind 0: the elements with mean 0 and variance 1, scaled and shifted.
// Kind 1: the mean. Kind 2: the factor that makes the variance 1.
vec2 moments_of(int row) {
    vec4 two = S_texel(min(row, rows - 1) >> 1);
    vec2 one = (row & 1) == 0 ? two.xy : two.zw;
    return vec2(one.x, 1.0 / sqrt(one.y / float(size) + epsilon));
}
// Where four elements from o on find their factor.
ivec4 repeated(int o, ivec2 by) {
    int rest = o / by.x, i = o - rest * by.x, at = rest - rest / by.y * by.y;
    ivec4 all = ivec4(at);
    for (int k = 1; k < 4; ++k) {
        bool ends = ++i == by.x;
        i = ends ? 0 : i;
        at = ends ? (at + 1 == by.y ? 0 : at + 1) : at;
        all[k] = at;
    }
    return all;
}
// Often one texel has the four factors, or the one that all have. The loop has no rounds then.
#define FOUR_OF(four, one, result) \
    vec4 result = at.x == at.w ? vec4(four[at.x & 3]) : four; \
    for (int k = at == ivec4(at.x) || at == (at.x & -4) + ivec4(0, 1, 2, 3) ? 4 : 0; k < 4; ++k) result[k] = one;
vec4 texel(int t) {
    int row = kind == 0 ? t * 4 / size : t * 4, i = kind == 0 ? t * 4 - row * size : 0, every = kind == 0 ? size : 1;
    vec2 own = moments_of(row);
    vec4 mean = vec4(own.x), factor = vec4(own.y);
    for (int k = i + 3 < every ? 4 : 1; k < 4; ++k) {
        bool ends = ++i == every;
        row += ends ? 1 : 0;
        i = ends ? 0 : i;
        own = moments_of(row);
        mean[k] = own.x;
        factor[k] = own.y;
    }
    ivec4 at = repeated(t * 4, scale);
    FOUR_OF(W_texel(at.x >> 2), W(at[k]), scales)
    at = repeated(t * 4, shift);
    FOUR_OF(B_texel(at.x >> 2), B(at[k]), shifts)
    vec4 y = (X_texel(t) - mean) * factor * scales;
    y = biased == 1 ? y + shifts : y;
    return kind == 0 ? y : kind == 1 ? mean : factor;
}
