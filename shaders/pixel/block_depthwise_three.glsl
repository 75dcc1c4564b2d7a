//@ input X texels
//@ input W texels
//@ input B texels
//@ input A texels
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param int depth_blocks
//@ param int group_blocks
//@ param int planes
//@ param int out_blocks
//@ param int has_bias
//@ param int addend_blocks
//@ unit strip
//@ include four
//@ include repeat
// Depthwise convolution of channel blocks in strips (lib/block_strip.glsl) with three taps in a row.
#define SIDE 1
#define PAIRS(p) PAIR(p, 1)
//@ include depthwise_rows
//@ include depthwise_lines
// The sums where lines are whole halves of strips, and the window's middle is above the pixel. A half lies in one line,
// and its data but for two texels at one place. What a half gets from beyond its ends is summed apart (`before`,
// `behind`), and is added where the line continues there. A half whose row of data lies outside of the plane leaves its part
// of v undefined; then the other half, which is in another line, needs none of it.
#define FITS_HALVES (size.x == output_.x && size.y % 4 == 0 && begin.y == 1)
#define ADD_HALF(h, first) \
    if (inside[h]) { \
        for (int p = first; p < first + 4; ++p) sum[p] += v[p + 1] * factor[1]; \
        for (int p = first; p < first + 3; ++p) sum[p + 1] += v[p + 1] * factor[0]; \
        for (int p = first; p < first + 3; ++p) sum[p] += v[p + 2] * factor[2]; \
        before[h] += v[first] * factor[0]; \
        behind[h] += v[first + 5] * factor[2]; \
    }
void add_window_in_halves(int first, int pixel, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * size.y, y[2], x[2];
    vec4 before[2] = vec4[2](vec4(0.0), vec4(0.0)), behind[2] = before;
    for (int h = 0; h < 2; ++h) {
        int begun = pixel + 4 * h, row = begun / size.y;
        x[h] = begun - row * size.y;
        y[h] = begun >= 0 && begun < area ? row - begin.x : -65536;
    }
    for (int i = 0; i < kernel.x; ++i) {
        int down = i * dilation.x, away = (down - begin.x) * size.y;
        bvec2 inside = bvec2(uint(y[0] + down) < uint(size.x), uint(y[1] + down) < uint(size.x));
        vec4 v[TEXELS + 2], factor[3];
        v[0] = AWAY(away - 1);
        for (int p = 0; p < 4; ++p) v[p + 1] = X_on((first >> 3) + (away >> 3), (away & 4) + p);
        for (int p = 0; p < 4; ++p) v[p + 5] = X_on((first >> 3) + (away + 4 >> 3), (away + 4 & 4) + p);
        v[9] = AWAY(away + 8);
        for (int k = 0; k < 3; ++k) factor[k] = W_on((w >> 3) + i, k);
        ADD_HALF(0, 0)
        ADD_HALF(1, 4)
    }
    for (int h = 0; h < 2; ++h) {
        sum[4 * h] += mix(vec4(0.0), before[h], bvec4(x[h] > 0));
        sum[4 * h + 3] += mix(vec4(0.0), behind[h], bvec4(x[h] + 4 < size.y));
    }
}
#define ADD_WINDOW(first, pixel, source, w) \
    if (FITS_HALVES) add_window_in_halves(first, pixel, w, sum); \
    else if (FITS_LINES) add_window_in_lines(first, pixel, w, sum); \
    else add_window(pixel, source, w, sum);
//@ include block_strip
