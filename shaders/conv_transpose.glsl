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
// Each output element gathers the input elements whose windows reach it.
float element(int o) {
    int column = o % output_.y, rest = o / output_.y;
    int row = rest % output_.x;
    rest /= output_.x;
    int m = rest % outputs, n = rest / outputs, per_group = outputs * depth / channels;
    int group = m / per_group;
    float total = has_bias == 1 ? B(m) : 0.0;
    for (int i = 0; i < kernel.x; ++i) {
        int y = row + begin.x - i * dilation.x;
        if (y < 0 || y % stride.x != 0 || y / stride.x >= size.x) continue;
        for (int j = 0; j < kernel.y; ++j) {
            int x = column + begin.y - j * dilation.y;
            if (x < 0 || x % stride.y != 0 || x / stride.y >= size.y) continue;
            int at = ((n * channels + group * depth) * size.x + y / stride.x) * size.y + x / stride.y;
            int w = ((group * depth * per_group + m % per_group) * kernel.x + i) * kernel.y + j;
            for (int c = 0; c < depth; ++c)
                total += X(at + c * size.x * size.y) * W(w + c * per_group * kernel.x * kernel.y);
        }
    }
    return epilogue(total);
}
