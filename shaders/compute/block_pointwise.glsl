//@ input X texels
//@ input W texels
//@ input B texels
//@ input A texels
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 stride
//@ param int depth_blocks
//@ param int group_blocks
//@ param int planes
//@ param int out_blocks
//@ param int has_bias
//@ param int addend_blocks
//@ unit grid
//@ include four
//@ include repeat
// Convolution of channel blocks with one tap and without padding. An invocation computes PIXELS pixels by BLOCKS blocks
// of four channels. The weights are packed as (BLOCKS blocks, two depth blocks, block, channel of the two, channel in
// block).
void tile(ivec3 at) {
    int area = output_.x * output_.y, plane = size.x * size.y, left = at.x * PIXELS;
    if (left >= area || at.y * BLOCKS >= out_blocks) return;
    int first = at.y * BLOCKS, source = (at.z * planes + first / group_blocks * depth_blocks) * plane;
    vec4 sum[BLOCKS][PIXELS], v[PIXELS];
    int k[PIXELS];
    for (int q = 0; q < BLOCKS; ++q) {
        vec4 start = has_bias == 1 ? B_texel(min(first + q, out_blocks - 1)) : vec4(0.0);
        for (int p = 0; p < PIXELS; ++p) sum[q][p] = start;
    }
    for (int p = 0; p < PIXELS; ++p) {
        int o = min(left + p, area - 1), row = o / output_.y;
        k[p] = source + row * stride.x * size.y + (o - row * output_.y) * stride.y;
    }
    int w = at.y * ((depth_blocks + 1) / 2) * (BLOCKS * 8);
    vec4 factor;
#define ADD(p, q, c) sum[q][p] += v[p][c] * factor;
#define CHANNEL(c, q, unused) factor = W_texel(w++); REPEAT(PIXELS, ADD, q, c)
#define ONE_BLOCK(q, unused, none) REPEAT2(4, CHANNEL, q, none)
#define LOAD(p, unused, none) v[p] = X_texel(k[p]); k[p] += plane;
    for (int c = 0; c < depth_blocks; c += 2) {
        REPEAT(PIXELS, LOAD, none, none)
        REPEAT3(BLOCKS, ONE_BLOCK, none, none)
        bool more = c + 1 < depth_blocks;
#define LOAD_MORE(p, unused, none) v[p] = mix(vec4(0.0), X_texel(more ? k[p] : 0), bvec4(more)); k[p] += plane;
        REPEAT(PIXELS, LOAD_MORE, none, none)
        REPEAT3(BLOCKS, ONE_BLOCK, none, none)
    }
    for (int q = 0; q < BLOCKS; ++q)
        for (int p = 0; p < PIXELS; ++p)
            if (left + p < area && first + q < out_blocks) {
                int o = (at.z * out_blocks + first + q) * area + left + p;
                vec4 value = sum[q][p];
                if (first + q < addend_blocks) value += A_texel((at.z * addend_blocks + first + q) * area + left + p);
                store(o, epilogue_of_four(value));
            }
}
