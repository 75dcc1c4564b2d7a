// A strip of consecutive pixels, four channels each. It may end in another plane of the result than it begins in; then
// it is computed for both, with their weights. ADD_WINDOW(first, pixel, source, w) adds the window's products to `sum`,
// for the pixels of one plane; a block has ROW_WEIGHTS texels of weights for each row of its window.
#define OF_PLANE(p) (pixel + p >= 0 && pixel + p < area)
void strip(int first, out vec4 result[TEXELS]) {
    int area = output_.x * output_.y, plane = size.x * size.y, final = min(first + TEXELS, (O_size + 3) / 4) - 1;
    vec4 sum[TEXELS];
    for (int p = 0; p < TEXELS; ++p) sum[p] = vec4(0.0);
    for (int t = first / area; t <= final / area; ++t) {
        int n = t / out_blocks, block = t - n * out_blocks, pixel = first - t * area;
        int source = (n * planes + block / group_blocks * depth_blocks) * plane;
        int w = block * depth_blocks * kernel.x * ROW_WEIGHTS;
        vec4 start = has_bias == 1 ? B_texel(block) : vec4(0.0);
        for (int p = 0; p < TEXELS; ++p) sum[p] = OF_PLANE(p) ? start : sum[p];
        ADD_WINDOW(first, pixel, source, w)
        for (int p = 0; p < TEXELS; ++p)
            if (OF_PLANE(p)) {
                if (block < addend_blocks) sum[p] += A_texel(first + p + n * (addend_blocks - out_blocks) * area);
                sum[p] = epilogue_of_four(sum[p]);
            }
    }
    result = sum;
}
