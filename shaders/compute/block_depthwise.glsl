//@ input X
//@ input W
//@ input B
//@ input A
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 begin
//@ param int planes
//@ param int out_blocks
//@ param int across
//@ param int has_bias
//@ param int addend_blocks
//@ include four
// Convolution of channel blocks where each channel meets its own weights: windows of WIDTH by WIDTH taps without
// dilation, STRIDE apart. A work group computes COLUMNS columns of pixels in one plane, an invocation PIXELS pixels below
// each other. The work group loads the patch that it needs into shared memory, once; `across` patches lie in a row.
// The weights are packed as (block, row, column, channel in block).
#define GRID
#define REACH(count) (((count) - 1) * STRIDE + WIDTH)
#define ROWS (64 / COLUMNS * PIXELS)
#define ACROSS REACH(COLUMNS)
#define DOWN REACH(ROWS)
#define SHARED REACH(PIXELS)
shared vec4 loaded[ACROSS * DOWN];
void tile(ivec3 at) {
    int me = at.x & 63, group = at.x >> 6, down = group / across;
    ivec2 corner = ivec2(down * ROWS, (group - down * across) * COLUMNS), first = corner * STRIDE - begin;
    int source = (at.z * planes + at.y) * size.x * size.y;
    for (int k = me; k < ACROSS * DOWN; k += 64) {
        int row = k / ACROSS;
        ivec2 from = first + ivec2(row, k - row * ACROSS), place = max(ivec2(0), min(from, size - 1));
        loaded[k] = mix(vec4(0.0), X_texel(source + place.x * size.y + place.y), bvec4(from == place));
    }
    barrier();
    int row = me / COLUMNS * PIXELS, column = me & (COLUMNS - 1), k = row * STRIDE * ACROSS + column * STRIDE;
    vec4 sum[PIXELS];
    for (int p = 0; p < PIXELS; ++p) sum[p] = has_bias == 1 ? B_texel(at.y) : vec4(0.0);
    int w = at.y * WIDTH * WIDTH;
    for (int end = w + WIDTH; w < end; ++w, ++k) {
        vec4 v[SHARED];
        for (int p = 0; p < SHARED; ++p) v[p] = loaded[k + p * ACROSS];
        for (int i = 0; i < WIDTH; ++i) {
            vec4 factor = W_texel(w + i * WIDTH);
            for (int p = 0; p < PIXELS; ++p) sum[p] += v[p * STRIDE + i] * factor;
        }
    }
    ivec2 to = corner + ivec2(row, column);
    int pixel = to.x * output_.y + to.y, area = output_.x * output_.y;
    for (int p = 0; p < PIXELS; ++p, pixel += output_.y)
        if (to.x + p < output_.x && to.y < output_.y) {
            vec4 value = sum[p];
            if (at.y < addend_blocks) value += A_texel((at.z * addend_blocks + at.y) * area + pixel);
            store((at.z * out_blocks + at.y) * area + pixel, epilogue_of_four(value));
        }
}
