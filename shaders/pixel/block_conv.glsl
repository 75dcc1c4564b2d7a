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
//@ param int has_bias
//@ param int addend_blocks
//@ unit strip
//@ include four
//@ include repeat
//@ include block_products
// Convolution of channel blocks in strips (lib/block_strip.glsl), with windows of any taps. What depends on a tap alone
// is decided outside of the loop over channels. The weights are packed as (block, kernel row, tap in row, depth block,
// depth in block, channel in block).
#define ADD(p, k, none) if (inside[p]) { REPEAT(CHANNELS, PRODUCT, p, k) }
void add_window(int pixel, int source, int w, inout vec4 sum[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y, x0[TEXELS], y0[TEXELS];
    for (int p = 0; p < TEXELS; ++p) {
        int row = (pixel + p) / output_.y;
        x0[p] = (pixel + p - row * output_.y) * stride.y - begin.y;
        y0[p] = row * stride.x - begin.x;
    }
    for (int i = 0; i < kernel.x; ++i)
        for (int j = 0; j < kernel.y; ++j) {
            bool inside[TEXELS];
            int at[TEXELS];
            for (int p = 0; p < TEXELS; ++p) {
                int x = x0[p] + j * dilation.y, y = y0[p] + i * dilation.x;
                inside[p] = pixel + p >= 0 && pixel + p < area && x >= 0 && x < size.y && y >= 0 && y < size.x;
                at[p] = source + y * size.y + x;
            }
            for (int c = 0; c < DEPTH_BLOCKS; ++c) {
                vec4 v[TEXELS], factor[CHANNELS];
                for (int p = 0; p < TEXELS; ++p) {
                    v[p] = DATA(at[p]);
                    at[p] += plane;
                }
                TAP(0, none, none)
            }
        }
}
#define ROW_WEIGHTS kernel.y * CHANNELS
#define ADD_WINDOW(first, pixel, source, w) add_window(pixel, source, w, sum);
//@ include block_strip
