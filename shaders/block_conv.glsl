//@ input X
//@ input W
//@ input B
//@ input A
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
//@ param int has_bias
//@ param int addend_blocks
//@ include four
//@ include repeat
// Convolution of channel blocks in strips of consecutive pixels, four channels each. A strip may end in another plane of
// the result than it begins in; then it is computed for both, with their weights. The weights are packed as (block, depth
// block, kernel row, column, depth in block, channel in block).
// A block of depth has DEPTH channels: 4, or 1 to 3 that are read from planes. DEPTH is 0 if each channel meets its own
// weight alone. ONE_TAP is 1 if no tap lies outside the picture.
#define STRIP
#if DEPTH == 1
#define DATA(at, plane) vec4(X(at), 0.0, 0.0, 0.0)
#elif DEPTH == 2
#define DATA(at, plane) vec4(X(at), X((at) + plane), 0.0, 0.0)
#elif DEPTH == 3
#define DATA(at, plane) vec4(X(at), X((at) + plane), X((at) + 2 * plane), 0.0)
#else
#define DATA(at, plane) X_texel(at)
#endif
void strip(int first, out vec4 result[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y, final = min(first + TEXELS, (O_size + 3) / 4) - 1;
    for (int t = first / area; t <= final / area; ++t) {
        int n = t / out_blocks, block = t - n * out_blocks;
#if DEPTH == 0
        int source = (n * planes + block) * plane;
#else
        int source = (n * planes + block / group_blocks * depth_blocks) * plane;
#endif
        int w = block * depth_blocks * kernel.x * kernel.y * max(DEPTH, 1);
        vec4 start = has_bias == 1 ? B_texel(block) : vec4(0.0), sum[TEXELS], v[TEXELS], factor;
        int x0[TEXELS], y0[TEXELS];
#define BEGIN(p, unused, none) { \
    int at = min(max(first + p - t * area, 0), area - 1), row = at / output_.y; \
    sum[p] = start; x0[p] = (at - row * output_.y) * stride.y - begin.y; y0[p] = row * stride.x - begin.x; \
}
        REPEAT(TEXELS, BEGIN, none, none)
        for (int c = 0; c < depth_blocks; ++c, source += plane)
#if ONE_TAP == 1
        {
#define LOAD(p, unused, none) v[p] = DATA(source + y0[p] * size.y + x0[p], plane);
#else
            for (int i = 0; i < kernel.x; ++i)
                for (int j = 0; j < kernel.y; ++j) {
                    int dx = j * dilation.y, dy = i * dilation.x;
#define LOAD(p, unused, none) { \
    int x = x0[p] + dx, y = y0[p] + dy, x1 = min(max(x, 0), size.y - 1), y1 = min(max(y, 0), size.x - 1); \
    v[p] = mix(vec4(0.0), DATA(source + y1 * size.y + x1, plane), bvec4(x == x1 && y == y1)); \
}
#endif
                    REPEAT(TEXELS, LOAD, none, none)
#if DEPTH == 0
                    factor = W_texel(w++);
#define ADD(p, unused, none) sum[p] += v[p] * factor;
                    REPEAT(TEXELS, ADD, none, none)
#else
#define ADD(p, k, none) sum[p] += v[p][k] * factor;
#define CHANNEL(k, unused, none) factor = W_texel(w++); REPEAT(TEXELS, ADD, k, none)
                    REPEAT2(DEPTH, CHANNEL, none, none)
#endif
                }
#define KEEP(p, unused, none) if ((first + p) / area == t) { \
    if (block < addend_blocks) sum[p] += A_texel(first + p + n * (addend_blocks - out_blocks) * area); \
    result[p] = epilogue_of_four(sum[p]); \
}
        REPEAT(TEXELS, KEEP, none, none)
    }
}
