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
// Depthwise convolution of channel blocks in strips (lib/block_strip.glsl) with five or seven taps in a row.
#define PAIRS(p) PAIR(p, 1) if (GOES_ON(p - 1)) { PAIR(p, 2) }
//@ include depthwise_rows
#if WIDTH == 5
#define SIDE 2
//@ include depthwise_lines
#else // seven taps would take too many registers
#define SIDE 3
#define FITS_LINES false
#define add_window_in_lines(first, pixel, w, sum)
#endif
// The sums where lines are whole strips, and the window's middle is above the pixel: most of a strip's data is at one
// place.
#define FITS_STRIPS (size.x == output_.x && size.y % TEXELS == 0 && begin.y == SIDE)
void add_window_in_strips(int first, int pixel, int w, inout vec4 sum[TEXELS]) {
    int row = pixel / size.y, x = pixel - row * size.y, y = row - begin.x;
    for (int i = 0; i < kernel.x; ++i) {
        int down = i * dilation.x, away = (down - begin.x) * size.y;
        if (uint(y + down) < uint(size.x)) {
            vec4 v[TEXELS + 2 * SIDE], factor[WIDTH];
            int place = first + away >> 3;
            for (int p = 0; p < SIDE; ++p) v[p] = X_on(place - 1, p + TEXELS - SIDE);
            for (int p = 0; p < TEXELS; ++p) v[p + SIDE] = X_on(place, p);
            for (int p = 0; p < SIDE; ++p) v[p + TEXELS + SIDE] = X_on(place + 1, p);
            for (int k = 0; k < WIDTH; ++k) factor[k] = W_on((w >> 3) + i, k);
            for (int k = 0; k < WIDTH; ++k)
                for (int p = 0; p < TEXELS; ++p)
                    if (p + k >= SIDE && p + k < TEXELS + SIDE) sum[p] += v[p + k] * factor[k];
            if (x > 0)
                for (int k = 0; k < SIDE; ++k)
                    for (int p = 0; p < SIDE; ++p)
                        if (p + k < SIDE) sum[p] += v[p + k] * factor[k];
            if (x + TEXELS < size.y)
                for (int k = SIDE + 1; k < WIDTH; ++k)
                    for (int p = TEXELS - SIDE; p < TEXELS; ++p)
                        if (p + k >= TEXELS + SIDE) sum[p] += v[p + k] * factor[k];
        }
    }
}
#define ADD_WINDOW(first, pixel, source, w) \
    if (FITS_STRIPS) add_window_in_strips(first, pixel, w, sum); \
    else if (FITS_LINES) add_window_in_lines(first, pixel, w, sum); \
    else add_window(pixel, source, w, sum);
//@ include block_strip
