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
// the result than it begins in; then it is computed for both, with their weights. What depends on a tap alone is decided
// outside of the loop over channels. The weights are packed as (block, kernel row, tap in row, depth block, depth in
// block, channel in block); if WIDTH is not 0, as (block, kernel row, depth block, tap in row, ...). With STRIPS, rows
// of weights are filled up to TEXELS taps, which lie at one place.
// A block of depth has DEPTH channels: 4, or 1 to 3 that are read from planes. DEPTH is 0 if each channel meets its own
// weight alone. If WIDTH is not 0, a row of the window has so many taps, and lines of the result are as long as those
// of the data: then a strip's data is consecutive too, and its taps share what they read.
#define STRIP
#if DEPTH == 4
#define DATA(at) X_texel(at)
#define FACTOR(d, unused, none) factor[d] = W_near(w, d);
#else
#define FACTOR(d, unused, none) factor[d] = W_texel(w + d);
#endif
#if DEPTH == 0
#define CHANNELS 1
#define DATA(at) X_texel(at)
#define PRODUCT(d, p, k) sum[p] += v[p + k] * factor[d];
#else
#define CHANNELS DEPTH
#define PRODUCT(d, p, k) sum[p] += v[p + k][d] * factor[d];
#endif
#if DEPTH == 1
#define DATA(at) vec4(X(at), 0.0, 0.0, 0.0)
#elif DEPTH == 2
#define DATA(at) vec4(X(at), X((at) + plane), 0.0, 0.0)
#elif DEPTH == 3
#define DATA(at) vec4(X(at), X((at) + plane), X((at) + 2 * plane), 0.0)
#endif
#if WIDTH > 0
#define TAPS WIDTH
#define ROUNDS 1
#else
#define TAPS 1
#define ROUNDS kernel.y
#endif
#ifdef STRIPS
#define FILLING (TEXELS - TAPS)
#else
#define FILLING 0
#endif
#define OF_PLANE(p) (pixel + p >= 0 && pixel + p < area)
#ifdef STRIPS // a mask for each pixel and tap would take too many registers
#define INSIDE(p, k) ((in_row[p / 4] & 1 << (p % 4 * TAPS + k)) != 0)
#else
#define INSIDE(p, k) inside[p * TAPS + k]
#endif
#define ADD(p, k, none) if (INSIDE(p, k)) { REPEAT(CHANNELS, PRODUCT, p, k) }
#define TAP(k, unused, none) REPEAT(CHANNELS, FACTOR, none, none) REPEAT2(TEXELS, ADD, k, none) w += CHANNELS;
void add_window(int pixel, int source, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y;
#if WIDTH > 0
    int in_line[2] = int[2](0, 0); // a bit for each tap of a row, of four pixels each
    for (int p = 0; p < TEXELS; ++p) {
        int x = (pixel + p) % size.y - begin.y;
        for (int k = 0; k < TAPS; ++k)
            in_line[p / 4] |= int(OF_PLANE(p) && x + k >= 0 && x + k < size.y) << (p % 4 * TAPS + k);
    }
#else
    int x0[TEXELS], y0[TEXELS];
    for (int p = 0; p < TEXELS; ++p) {
        int row = (pixel + p) / output_.y;
        x0[p] = (pixel + p - row * output_.y) * stride.y - begin.y;
        y0[p] = row * stride.x - begin.x;
    }
#endif
    for (int i = 0; i < kernel.x; ++i)
        for (int j = 0; j < ROUNDS; ++j) {
#ifdef STRIPS
            int at = pixel + (i * dilation.x - begin.x) * size.y, in_row[2] = in_line;
            for (int p = 0; p < TEXELS; ++p)
                if (at + p < 0 || at + p >= plane) in_row[p / 4] &= ~((1 << TAPS) - 1 << p % 4 * TAPS);
            at += source - begin.y;
#elif WIDTH > 0
            bool inside[TEXELS * TAPS];
            int at = pixel + (i * dilation.x - begin.x) * size.y;
            for (int p = 0; p < TEXELS; ++p) {
                bool on_row = at + p >= 0 && at + p < plane;
                for (int k = 0; k < TAPS; ++k)
                    inside[p * TAPS + k] = on_row && (in_line[p / 4] & 1 << (p % 4 * TAPS + k)) != 0;
            }
            at += source - begin.y;
#else
            bool inside[TEXELS * TAPS];
            int at[TEXELS];
            for (int p = 0; p < TEXELS; ++p) {
                int x = x0[p] + j * dilation.y, y = y0[p] + i * dilation.x;
                inside[p] = OF_PLANE(p) && x >= 0 && x < size.y && y >= 0 && y < size.x;
                at[p] = source + y * size.y + x;
            }
#endif
#if DEPTH == 4
            for (int c = 0; c < depth_blocks; ++c) // otherwise there is one block
#endif
            {
                vec4 v[TEXELS + TAPS - 1], factor[CHANNELS];
#if WIDTH > 0
                for (int p = 0; p < TEXELS + TAPS - 1; ++p) v[p] = DATA(at + p);
                at += plane;
#else
                for (int p = 0; p < TEXELS; ++p) {
                    v[p] = DATA(at[p]);
                    at[p] += plane;
                }
#endif
                REPEAT3(TAPS, TAP, none, none)
                w += FILLING;
            }
        }
}
#if WIDTH == 3
#define SIDE 1
#elif WIDTH == 5
#define SIDE 2
#else
#define SIDE 3
#endif
#ifdef STRIPS
// The texel that lies `away` texels from the first one of a strip of data: its sheet is the same number for all strips.
#define AWAY(away) X_on((first >> 3) + ((away) >> 3), (away) & TEXELS - 1)
#endif
#if defined(STRIPS) && WIDTH == 3
#define FITS_STRIPS (size.x == output_.x && size.y % 4 == 0 && begin.y == 1)
// The window's sums where each channel has its own weights, lines are whole halves of strips, and the window's middle is
// above the pixel. A half lies in one line, and its data but for two texels at one place. What a half gets from beyond its
// ends is summed apart (`before`, `behind`), and counts where the line goes on there. A half whose row of data lies outside
// of the plane leaves its part of v undefined; then the other half, which is in another line, needs none of it.
void add_window_in_strips(int first, int pixel, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * size.y, y[2], x[2];
    vec4 before[2] = vec4[2](vec4(0.0), vec4(0.0)), behind[2] = before;
    for (int h = 0; h < 2; ++h) {
        int row = (pixel + 4 * h) / size.y;
        x[h] = pixel + 4 * h - row * size.y;
        y[h] = OF_PLANE(4 * h) ? row - begin.x : -65536;
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
#define ADD_HALF(h, first) \
    if (inside[h]) { \
        for (int p = first; p < first + 4; ++p) sum[p] += v[p + 1] * factor[1]; \
        for (int p = first; p < first + 3; ++p) sum[p + 1] += v[p + 1] * factor[0]; \
        for (int p = first; p < first + 3; ++p) sum[p] += v[p + 2] * factor[2]; \
        before[h] += v[first] * factor[0]; \
        behind[h] += v[first + 5] * factor[2]; \
    }
        ADD_HALF(0, 0)
        ADD_HALF(1, 4)
    }
    for (int h = 0; h < 2; ++h) {
        sum[4 * h] += mix(vec4(0.0), before[h], bvec4(x[h] > 0));
        sum[4 * h + 3] += mix(vec4(0.0), behind[h], bvec4(x[h] + 4 < size.y));
    }
}
#elif defined(STRIPS)
#define FITS_STRIPS (size.x == output_.x && size.y % TEXELS == 0 && begin.y == SIDE)
// More taps, where lines are whole strips: most of a strip's data is at one place.
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
#endif
#if defined(STRIPS) && WIDTH > 1 && WIDTH < 7 // seven taps would take too many registers
#define FITS_LINES (size.x == output_.x && size.y >= 7 && begin.y == SIDE)
// The window's sums where a strip has pixels of two lines at most: of line `row` up to the pixel `split` of the strip, and
// of the next line from there on. The data lies where the result does, but for a distance that is the same for all
// strips, so that the sheet of each texel is one number for all. Two pixels meet each other's data if no line ends between
// them; the pixel at `split` meets its own data apart (`start`), so that compilers leave branches of more than eight
// multiply-adds, and do not compute both sides.
#define GOES_ON(p) goes_on[(p) + SIDE]
#define OF_STRIP(p) ((p) >= 0 && (p) < TEXELS)
#define PAIR(p, d) \
    if (OF_STRIP((p) - d)) sum[(p) - d & 7] += v[p + SIDE] * factor[SIDE + d]; \
    if (OF_STRIP(p)) sum[p & 7] += v[(p) - d + SIDE] * factor[SIDE - d];
#if WIDTH == 3
#define PAIRS(p) PAIR(p, 1)
#else
#define PAIRS(p) PAIR(p, 1) if (GOES_ON(p - 1)) { PAIR(p, 2) }
#endif
#define ADD_PIXEL(p, unused, none) \
    if (above[p] ? inside.x : GOES_ON(p) && inside.y) { \
        sum[p] += v[p + SIDE] * factor[SIDE]; \
        if (p > 0 || x > 0) { PAIRS(p) } \
    }
#define ADD_BEHIND(p, unused, none) if (GOES_ON(p + TEXELS) && (above[7] ? inside.x : inside.y)) { PAIRS(p + TEXELS) }
void add_window_in_lines(int first, int pixel, int w, inout vec4 sum[TEXELS]) {
    int row = (pixel + size.y) / size.y - 1, x = pixel - row * size.y, split = size.y - x;
    bool goes_on[TEXELS + 2 * SIDE], above[TEXELS];
    for (int j = 0; j < TEXELS + 2 * SIDE; ++j)
        goes_on[j] = j - SIDE != -x && j - SIDE != split && j - SIDE != split + size.y;
    for (int p = 0; p < TEXELS; ++p) above[p] = p < split;
    bvec2 of_plane = bvec2(uint(row) < uint(size.x), uint(row + 1) < uint(size.x));
    vec4 start = vec4(0.0);
    for (int i = 0; i < kernel.x; ++i) {
        int down = i * dilation.x - begin.x, away = down * size.y;
        vec4 v[TEXELS + 2 * SIDE], factor[WIDTH], own = X_texel(first + away + split);
        for (int p = 0; p < TEXELS + 2 * SIDE; ++p) v[p] = AWAY(away - SIDE + p);
        for (int k = 0; k < WIDTH; ++k) factor[k] = W_on((w >> 3) + i, k);
        bvec2 inside = bvec2(
            of_plane.x && uint(row + down) < uint(size.x), of_plane.y && uint(row + 1 + down) < uint(size.x)
        );
        REPEAT(TEXELS, ADD_PIXEL, none, none)
        REPEAT(SIDE, ADD_BEHIND, none, none)
        if (inside.y) start += own * factor[SIDE];
    }
    for (int p = 0; p < TEXELS; ++p)
        if (p == split) sum[p] += start;
}
#endif
void strip(int first, out vec4 result[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y, final = min(first + TEXELS, (O_size + 3) / 4) - 1;
    vec4 sum[TEXELS];
    for (int p = 0; p < TEXELS; ++p) sum[p] = vec4(0.0);
    for (int t = first / area; t <= final / area; ++t) {
        int n = t / out_blocks, block = t - n * out_blocks, pixel = first - t * area;
#if DEPTH == 0
        int source = (n * planes + block) * plane;
#else
        int source = (n * planes + block / group_blocks * depth_blocks) * plane;
#endif
        int w = block * depth_blocks * kernel.x * (kernel.y + FILLING) * CHANNELS;
        vec4 start = has_bias == 1 ? B_texel(block) : vec4(0.0);
        for (int p = 0; p < TEXELS; ++p) sum[p] = OF_PLANE(p) ? start : sum[p];
#ifdef STRIPS
        if (FITS_STRIPS) add_window_in_strips(first, pixel, w, sum);
#if WIDTH > 1 && WIDTH < 7
        else if (FITS_LINES) add_window_in_lines(first, pixel, w, sum);
#endif
        else
#endif
            add_window(pixel, source, w, sum);
        for (int p = 0; p < TEXELS; ++p)
            if (OF_PLANE(p)) {
                if (block < addend_blocks) sum[p] += A_texel(first + p + n * (addend_blocks - out_blocks) * area);
                sum[p] = epilogue_of_four(sum[p]);
            }
    }
    result = sum;
}
