//@ input X texels
//@ input W texels
//@ input B texels
//@ input A texels
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 begin
//@ param int rows
//@ param int columns
//@ param int across
//@ param int planes
//@ param int out_blocks
//@ param int has_bias
//@ param int addend_blocks
//@ unit grid
//@ include four
// Convolution of channel blocks where each channel meets its own weights: windows of WIDTH by WIDTH taps without
// dilation, STRIDE apart. A work group computes `rows` rows and `columns` columns of pixels in one plane, an invocation
// PIXELS pixels below each other. The work group loads the patch that it needs into shared memory, once, column by
// column, so that what an invocation reads of a column lies together; `across` patches lie in a row. Columns are an odd
// number of texels apart: neighbouring invocations then meet different banks of the memory.
// The weights are packed as (block, row, column, channel in block).
#define REACH(count) (((count) - 1) * STRIDE + WIDTH)
#define ROUNDS ((PATCH + GROUP_COLUMNS - 1) / GROUP_COLUMNS)
shared vec4 loaded[PATCH];
void tile(ivec3 at) {
    int me = int(gl_LocalInvocationID.x), group = O_first.x / GROUP_COLUMNS + int(gl_WorkGroupID.x);
    int down = group / across, tall = REACH(rows), wide = REACH(columns), apart = tall | 1;
    ivec2 corner = ivec2(down * rows, (group - down * across) * columns), first = corner * STRIDE - begin;
    // Lanes go through the patch line by line: from one texel to that of the next round, and to one of the line below.
    ivec2 further = ivec2(GROUP_COLUMNS / wide, GROUP_COLUMNS % wide), below = further + ivec2(1, -wide);
    ivec2 steps = ivec2(further.x * size.y + further.y, further.x + further.y * apart);
    ivec2 steps_below = ivec2(below.x * size.y + below.y, below.x + below.y * apart);
    ivec2 in_patch = ivec2(me / wide, me % wide), from = first + in_patch, beyond = first + ivec2(tall, wide);
    int source = (at.z * planes + at.y) * size.x * size.y, places[ROUNDS];
    ivec2 address = ivec2(source + from.x * size.y + from.y, in_patch.x + in_patch.y * apart); // of the data, in the patch
    vec4 values[ROUNDS];
    for (int i = 0; i < ROUNDS; ++i) { // all loads begin before the first one ends
        bool inside = uint(from.x) < uint(size.x) && uint(from.y) < uint(size.y);
        values[i] = mix(vec4(0.0), X_texel(inside ? address.x : source), bvec4(inside));
        places[i] = from.x < beyond.x ? address.y : -1;
        bool goes_below = from.y + further.y >= beyond.y;
        from += goes_below ? below : further;
        address += goes_below ? steps_below : steps;
    }
    for (int i = 0; i < ROUNDS; ++i)
        if (places[i] >= 0) loaded[places[i]] = values[i];
    barrier();
    int row = me / columns * PIXELS, column = me % columns, k = column * STRIDE * apart + row * STRIDE;
    ivec2 to = corner + ivec2(row, column);
    if (row >= rows || to.x >= output_.x || to.y >= output_.y) return;
    vec4 sum[PIXELS];
    for (int p = 0; p < PIXELS; ++p) sum[p] = has_bias == 1 ? B_texel(at.y) : vec4(0.0);
    int w = at.y * WIDTH * WIDTH;
    for (int end = w + WIDTH; w < end; ++w, k += apart) {
        vec4 v[REACH(PIXELS)];
        for (int p = 0; p < REACH(PIXELS); ++p) v[p] = loaded[k + p];
        for (int i = 0; i < WIDTH; ++i) {
            vec4 factor = W_texel(w + i * WIDTH);
            for (int p = 0; p < PIXELS; ++p) sum[p] += v[p * STRIDE + i] * factor;
        }
    }
    int pixel = to.x * output_.y + to.y, area = output_.x * output_.y;
    for (int p = 0; p < PIXELS; ++p, pixel += output_.y)
        if (to.x + p < output_.x) {
            vec4 value = sum[p];
            if (at.y < addend_blocks) value += A_texel((at.z * addend_blocks + at.y) * area + pixel);
            store((at.z * out_blocks + at.y) * area + pixel, epilogue_of_four(value));
        }
}
