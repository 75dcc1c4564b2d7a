//@ input X
//@ input W
//@ input B
//@ param ivec4 size
//@ param ivec4 output_
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ param int channels
//@ param int outputs
//@ param int depth
//@ param int has_bias
//@ long
// Direct convolution over three dims, also of integers.
O_TYPE element(int o) {
    int column = o % output_.z, rest = o / output_.z;
    int row = rest % output_.y;
    rest /= output_.y;
    int slice = rest % output_.x;
    rest /= output_.x;
    int m = rest % outputs, n = rest / outputs;
    int volume = size.x * size.y * size.z, taps = kernel.x * kernel.y * kernel.z;
    int first = (n * channels + m / (outputs * depth / channels) * depth) * volume;
    O_TYPE total = has_bias == 1 ? B(m) : O_TYPE(0);
    for (int i = 0; i < kernel.x; ++i) {
        int z = slice * stride.x - begin.x + i * dilation.x;
        if (z < 0 || z >= size.x) continue;
        for (int j = 0; j < kernel.y; ++j) {
            int y = row * stride.y - begin.y + j * dilation.y;
            if (y < 0 || y >= size.y) continue;
            for (int k = 0; k < kernel.z; ++k) {
                int x = column * stride.z - begin.z + k * dilation.z;
                if (x < 0 || x >= size.z) continue;
                int at = first + (z * size.y + y) * size.z + x;
                int w = m * depth * taps + (i * kernel.y + j) * kernel.z + k;
                for (int c = 0; c < depth; ++c) total += W(w + c * taps) * X(at + c * volume);
            }
        }
    }
    return epilogue(total);
}
