//@ input X
//@ input W texels
//@ input B
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param int channels
//@ param int outputs
//@ param int depth
//@ param int groups
//@ param int has_bias
//@ unit tile
// Direct convolution. An invocation computes 4 output channels of one group by 8 pixels, so that each loaded input
// serves four channels. The weights are packed as (group, block of 4 channels, kernel row, column, depth, channel in
// block).
void channel(int base, int pixels, vec4 low, vec4 high, int first) {
    for (int k = 0; k < 8; ++k)
        if (first + k < pixels) store(base + first + k, epilogue(k < 4 ? low[k] : high[k - 4]));
}
void tile(int t) {
    int pixels = output_.x * output_.y, strips = (pixels + 7) / 8;
    int per_group = outputs / groups, blocks = (per_group + 3) / 4;
    int strip = t % strips, rest = t / strips;
    int block = rest % blocks;
    rest /= blocks;
    int group = rest % groups, n = rest / groups;
    ivec4 o0 = min(strip * 8 + ivec4(0, 1, 2, 3), ivec4(pixels - 1)), o1 = min(strip * 8 + ivec4(4, 5, 6, 7), ivec4(pixels - 1));
    ivec4 r0 = o0 / output_.y, r1 = o1 / output_.y;
    ivec4 x0 = (o0 - r0 * output_.y) * stride.y - begin.y, x1 = (o1 - r1 * output_.y) * stride.y - begin.y;
    ivec4 y0 = r0 * stride.x - begin.x, y1 = r1 * stride.x - begin.x;
    int plane = size.x * size.y, first = (n * channels + group * depth) * plane;
    int w = (group * blocks + block) * kernel.x * kernel.y * depth;
    int m = group * per_group + block * 4, count = min(4, per_group - block * 4);
    vec4 b = vec4(0.0);
    if (has_bias == 1) for (int k = 0; k < count; ++k) b[k] = B(m + k);
    vec4 a0 = vec4(b.x), a1 = vec4(b.y), a2 = vec4(b.z), a3 = vec4(b.w), c0 = a0, c1 = a1, c2 = a2, c3 = a3;
    for (int i = 0; i < kernel.x; ++i)
        for (int j = 0; j < kernel.y; ++j) {
            ivec4 x = x0 + j * dilation.y, y = y0 + i * dilation.x;
            ivec4 in0 = ivec4(greaterThanEqual(x, ivec4(0))) * ivec4(lessThan(x, ivec4(size.y)))
                * ivec4(greaterThanEqual(y, ivec4(0))) * ivec4(lessThan(y, ivec4(size.x)));
            ivec4 k0 = first + in0 * (y * size.y + x);
            x = x1 + j * dilation.y;
            y = y1 + i * dilation.x;
            ivec4 in1 = ivec4(greaterThanEqual(x, ivec4(0))) * ivec4(lessThan(x, ivec4(size.y)))
                * ivec4(greaterThanEqual(y, ivec4(0))) * ivec4(lessThan(y, ivec4(size.x)));
            ivec4 k1 = first + in1 * (y * size.y + x);
            bvec4 s0 = equal(in0, ivec4(1)), s1 = equal(in1, ivec4(1));
            for (int c = 0; c < depth; ++c) {
                vec4 v = W_texel(w++);
                vec4 u0 = mix(vec4(0.0), vec4(X(k0.x), X(k0.y), X(k0.z), X(k0.w)), s0);
                vec4 u1 = mix(vec4(0.0), vec4(X(k1.x), X(k1.y), X(k1.z), X(k1.w)), s1);
                a0 += v.x * u0; a1 += v.y * u0; a2 += v.z * u0; a3 += v.w * u0;
                c0 += v.x * u1; c1 += v.y * u1; c2 += v.z * u1; c3 += v.w * u1;
                k0 += plane; k1 += plane;
            }
        }
    int base = (n * outputs + m) * pixels;
    channel(base, pixels, a0, c0, strip * 8);
    if (count > 1) channel(base + pixels, pixels, a1, c1, strip * 8);
    if (count > 2) channel(base + 2 * pixels, pixels, a2, c2, strip * 8);
    if (count > 3) channel(base + 3 * pixels, pixels, a3, c3, strip * 8);
}
