//@ input X elements texels
//@ input W texels
//@ input B texels
//@ input A texels
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param int depth_blocks
//@ param int group_blocks
//@ param int planes
//@ param int out_blocks
//@ param int strips
//@ param int has_bias
//@ param int addend_blocks
//@ unit grid
//@ include four
//@ include repeat
// Convolution of channel blocks. An invocation computes PIXELS pixels of a row by BLOCKS blocks of four channels. The
// invocations of a work group share the addresses of weights, and neighbours read neighbouring pixels. The weights are
// packed as (BLOCKS blocks, depth block, kernel row, column, block, depth in block, channel in block).
// A block of depth has DEPTH channels: 4, or 1 to 3 that are read from planes. DEPTH is 0 if each channel meets its own
// weight alone. If WIDTH is not 0, a row of the window has so many taps without dilation, the stride is STRIDE, and the
// pixels share what they read of a line.
#define SHARED ((PIXELS - 1) * STRIDE + WIDTH)
vec4 data(int at, int plane) {
#if DEPTH == 1
    return vec4(X(at), 0.0, 0.0, 0.0);
#elif DEPTH == 2
    return vec4(X(at), X(at + plane), 0.0, 0.0);
#elif DEPTH == 3
    return vec4(X(at), X(at + plane), X(at + 2 * plane), 0.0);
#else
    return X_texel(at);
#endif
}
void tile(ivec3 at) {
    int row = at.x / strips, left = (at.x - row * strips) * PIXELS;
    if (row >= output_.x || at.y * BLOCKS >= out_blocks) return;
    int first = at.y * BLOCKS, plane = size.x * size.y;
#if DEPTH == 0
    int source = (at.z * planes + first) * plane;
#else
    int source = (at.z * planes + first / group_blocks * depth_blocks) * plane;
#endif
    vec4 sum[BLOCKS][PIXELS];
    for (int q = 0; q < BLOCKS; ++q) {
        vec4 start = has_bias == 1 ? B_texel(min(first + q, out_blocks - 1)) : vec4(0.0);
        for (int p = 0; p < PIXELS; ++p) sum[q][p] = start;
    }
    int w = at.y * depth_blocks * kernel.x * kernel.y * BLOCKS * max(DEPTH, 1);
    int x0 = left * stride.y - begin.y, y0 = row * stride.x - begin.x;
#if WIDTH > 0
    int column[SHARED];
    for (int p = 0; p < SHARED; ++p) column[p] = clamp(x0 + p, 0, size.y - 1);
#endif
    for (int c = 0; c < depth_blocks; ++c, source += plane)
        for (int i = 0; i < kernel.x; ++i) {
            int y = y0 + i * dilation.x;
            bool on_row = y >= 0 && y < size.x;
            int line = source + (on_row ? y : 0) * size.y;
#if WIDTH > 0
            vec4 v[SHARED];
            for (int p = 0; p < SHARED; ++p)
                v[p] = mix(vec4(0.0), data(line + column[p], plane), bvec4(on_row && column[p] == x0 + p));
            for (int j = 0; j < WIDTH; ++j) {
#define VALUE(p) v[p * STRIDE + j]
#else
            for (int j = 0; j < kernel.y; ++j) {
                vec4 v[PIXELS];
                for (int p = 0; p < PIXELS; ++p) {
                    int x = x0 + p * stride.y + j * dilation.y;
                    bool inside = on_row && x >= 0 && x < size.y;
                    v[p] = mix(vec4(0.0), data(line + clamp(x, 0, size.y - 1), plane), bvec4(inside));
                }
#define VALUE(p) v[p]
#endif
#if DEPTH == 0
                vec4 factor = W_texel(w++);
                for (int p = 0; p < PIXELS; ++p) sum[0][p] += VALUE(p) * factor;
#else
#define ADD(p, q, k) sum[q][p] += VALUE(p)[k] * factor;
#define CHANNEL(k, q, unused) factor = W_texel(w++); REPEAT(PIXELS, ADD, q, k)
#define ONE_BLOCK(q, unused, none) REPEAT2(DEPTH, CHANNEL, q, none)
                vec4 factor;
                REPEAT3(BLOCKS, ONE_BLOCK, none, none)
#endif
            }
        }
    int area = output_.x * output_.y, target = row * output_.y + left;
    for (int q = 0; q < BLOCKS; ++q)
        for (int p = 0; p < PIXELS; ++p)
            if (left + p < output_.y && first + q < out_blocks) {
                int o = (at.z * out_blocks + first + q) * area + target + p;
                vec4 value = sum[q][p];
                if (first + q < addend_blocks) value += A_texel((at.z * addend_blocks + first + q) * area + target + p);
                store(o, epilogue_of_four(value));
            }
}
