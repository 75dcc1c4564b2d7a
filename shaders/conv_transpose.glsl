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
// Transposed convolution over three dims: each output element sums the input elements whose windows reach it.
float element(int o) {
    int column = o % output_.z, rest = o / output_.z;
    int row = rest % output_.y;
    rest /= output_.y;
    int slice = rest % output_.x;
    rest /= output_.x;
    int m = rest % outputs, n = rest / outputs, per_group = outputs * depth / channels;
    int group = m / per_group, volume = size.x * size.y * size.z, taps = kernel.x * kernel.y * kernel.z;
    float total = has_bias == 1 ? B(m) : 0.0;
    for (int i = 0; i < kernel.x; ++i) {
        int z = slice + begin.x - i * dilation.x;
        if (z < 0 || z % stride.x != 0 || z / stride.x >= size.x) continue;
        for (int j = 0; j < kernel.y; ++j) {
            int y = row + begin.y - j * dilation.y;
            if (y < 0 || y % stride.y != 0 || y / stride.y >= size.y) continue;
            for (int k = 0; k < kernel.z; ++k) {
                int x = column + begin.z - k * dilation.z;
                if (x < 0 || x % stride.z != 0 || x / stride.z >= size.z) continue;
                int at = (n * channels + group * depth) * volume + (z / stride.x * size.y + y / stride.y) * size.z + x / stride.z;
                int w = (group * depth * per_group + m % per_group) * taps + (i * kernel.y + j) * kernel.z + k;
                for (int c = 0; c < depth; ++c) total += X(at + c * volume) * W(w + c * per_group * taps);
            }
        }
    }
    return epilogue(total);
}
