// The window's sums where a strip has pixels of two lines at most: of line `row` up to the pixel `split` of the strip, and
// of the next line from there on. The data lies where the result does, but for a distance that is the same for all
// strips, so that the sheet of each texel is one number for all. Two pixels meet each other's data if no line ends between
// them; the pixel at `split` meets its own data apart (`start`), so that compilers leave branches of more than eight
// multiply-adds, and do not compute both sides. PAIRS(p) adds the products of pixel p and those before it.
#define FITS_LINES (size.x == output_.x && size.y >= 7 && begin.y == SIDE)
#define GOES_ON(p) goes_on[(p) + SIDE]
#define OF_STRIP(p) ((p) >= 0 && (p) < TEXELS)
#define PAIR(p, d) \
    if (OF_STRIP((p) - d)) sum[(p) - d & 7] += v[p + SIDE] * factor[SIDE + d]; \
    if (OF_STRIP(p)) sum[p & 7] += v[(p) - d + SIDE] * factor[SIDE - d];
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
