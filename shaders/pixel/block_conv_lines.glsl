//@ input X elements texels
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
//@ include block_products
// Convolution of channel blocks in strips (lib/block_strip.glsl) where a row of the window has WIDTH taps, and lines of
// the result are as long as those of the data: a strip's data is consecutive too, and its taps share what they read. The
// weights are packed as (block, kernel row, depth block, tap in row, depth in block, channel in block).
#define ADD(p, k, none) if (inside[p * WIDTH + k]) { REPEAT(CHANNELS, PRODUCT, p, k) }
void add_window(int pixel, int source, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y;
    int in_line[2] = int[2](0, 0); // a bit for each tap of a row, of four pixels each
    for (int p = 0; p < TEXELS; ++p) {
        int x = (pixel + p) % size.y - begin.y;
        bool of_plane = pixel + p >= 0 && pixel + p < area;
        for (int k = 0; k < WIDTH; ++k)
            in_line[p / 4] |= int(of_plane && x + k >= 0 && x + k < size.y) << (p % 4 * WIDTH + k);
    }
    for (int i = 0; i < kernel.x; ++i) {
        bool inside[TEXELS * WIDTH];
        int at = pixel + (i * dilation.x - begin.x) * size.y;
        for (int p = 0; p < TEXELS; ++p) {
            bool on_row = at + p >= 0 && at + p < plane;
            for (int k = 0; k < WIDTH; ++k)
                inside[p * WIDTH + k] = on_row && (in_line[p / 4] & 1 << (p % 4 * WIDTH + k)) != 0;
        }
        at += source - begin.y;
        for (int c = 0; c < DEPTH_BLOCKS; ++c) {
            vec4 v[TEXELS + WIDTH - 1], factor[CHANNELS];
            for (int p = 0; p < TEXELS + WIDTH - 1; ++p) v[p] = DATA(at + p);
            at += plane;
            REPEAT3(WIDTH, TAP, none, none)
        }
    }
}
#define ROW_WEIGHTS kernel.y * CHANNELS
#define ADD_WINDOW(first, pixel, source, w) add_window(pixel, source, w, sum);
//@ include block_strip
