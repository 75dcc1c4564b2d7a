//@ input X
//@ input W
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
//@ param int has_bias
//@ param vec4 p[4]
// Direct convolution. Four outputs of one row share every weight; a texel that spans rows computes its elements one by one.
#define TEXEL
int group_of(int m) { return m / (outputs * depth / channels); }
float at_row(int line, int x) { return x >= 0 && x < size.y ? X(line + x) : 0.0; }
float one(int o) {
    int column = o % output_.y, rest = o / output_.y;
    int row = rest % output_.x;
    rest /= output_.x;
    int m = rest % outputs, n = rest / outputs;
    int plane = (n * channels + group_of(m) * depth) * size.x;
    float total = has_bias == 1 ? B(m) : 0.0;
    int w = m * depth * kernel.x * kernel.y;
    for (int c = 0; c < depth; ++c)
        for (int i = 0; i < kernel.x; ++i) {
            int y = row * stride.x - begin.x + i * dilation.x;
            if (y < 0 || y >= size.x) { w += kernel.y; continue; }
            int line = (plane + c * size.x + y) * size.y;
            for (int j = 0; j < kernel.y; ++j)
                total += W(w++) * at_row(line, column * stride.y - begin.y + j * dilation.y);
        }
    return total;
}
vec4 texel(int t) {
    int o = t * 4;
    int column = o % output_.y, rest = o / output_.y;
    vec4 total = vec4(0.0);
    if (column + 3 < output_.y) {
        int row = rest % output_.x;
        rest /= output_.x;
        int m = rest % outputs, n = rest / outputs;
        int plane = (n * channels + group_of(m) * depth) * size.x;
        if (has_bias == 1) total = vec4(B(m));
        int w = m * depth * kernel.x * kernel.y, s = stride.y;
        for (int c = 0; c < depth; ++c)
            for (int i = 0; i < kernel.x; ++i) {
                int y = row * stride.x - begin.x + i * dilation.x;
                if (y < 0 || y >= size.x) { w += kernel.y; continue; }
                int line = (plane + c * size.x + y) * size.y;
                for (int j = 0; j < kernel.y; ++j) {
                    int x = column * s - begin.y + j * dilation.y;
                    float weight = W(w++);
                    if (x >= 0 && x + 3 * s < size.y) {
                        int k = line + x;
                        total += weight * vec4(X(k), X(k + s), X(k + 2 * s), X(k + 3 * s));
                    } else {
                        total += weight * vec4(at_row(line, x), at_row(line, x + s), at_row(line, x + 2 * s), at_row(line, x + 3 * s));
                    }
                }
            }
    } else {
        for (int k = 0; k < 4; ++k) if (o + k < O_size) total[k] = one(o + k);
    }
    return vec4(epilogue(total.x), epilogue(total.y), epilogue(total.z), epilogue(total.w));
}
