// Rows of a depthwise window: WIDTH taps, each with its own weights, where lines of the result are as long as those of
// the data. Rows of weights are filled up to TEXELS taps, which lie at one place. SIDE is WIDTH / 2.
#define ADD(p, k, none) if ((in_row[p / 4] & 1 << (p % 4 * WIDTH + k)) != 0) { sum[p] += v[p + k] * factor; }
#define TAP(k, unused, none) factor = W_texel(w + k); REPEAT2(TEXELS, ADD, k, none)
void add_window(int pixel, int source, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y;
    int in_line[2] = int[2](0, 0); // a bit for each tap of a row, of four pixels each: flags would take too many registers
    for (int p = 0; p < TEXELS; ++p) {
        int x = (pixel + p) % size.y - begin.y;
        bool of_plane = pixel + p >= 0 && pixel + p < area;
        for (int k = 0; k < WIDTH; ++k)
            in_line[p / 4] |= int(of_plane && x + k >= 0 && x + k < size.y) << (p % 4 * WIDTH + k);
    }
    for (int i = 0; i < kernel.x; ++i, w += TEXELS) {
        int at = pixel + (i * dilation.x - begin.x) * size.y, in_row[2] = in_line;
        for (int p = 0; p < TEXELS; ++p)
            if (at + p < 0 || at + p >= plane) in_row[p / 4] &= ~((1 << WIDTH) - 1 << p % 4 * WIDTH);
        at += source - begin.y;
        vec4 v[TEXELS + WIDTH - 1], factor;
        for (int p = 0; p < TEXELS + WIDTH - 1; ++p) v[p] = X_texel(at + p);
        REPEAT3(WIDTH, TAP, none, none)
    }
}
// The texel that lies `away` texels from the first one of a strip of data: its sheet is the same number for all strips.
#define AWAY(away) X_on((first >> 3) + ((away) >> 3), (away) & TEXELS - 1)
#define ROW_WEIGHTS TEXELS
