//@ input X
//@ input W
//@ input B
//@ param ivec4 size
//@ param ivec4 output_
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ param ivec4 divisor
//@ param ivec4 inverses
//@ param ivec4 weight
//@ param int channels
//@ param int outputs
//@ param int depth
//@ param int has_bias
//@ long
// Transposed convolution over three dims: each output element sums the input elements whose windows reach it. Taps reach
// an element if its place less `dilation` times their index is a multiple of the stride: the first of them, and those
// `stride / divisor` further. `divisor` divides stride and dilation; `inverses` are those of `dilation / divisor`, modulo that distance.
// `weight` has the distances of groups, outputs, taps and channels in W.
int first_tap(int place, int axis) {
    int apart = stride[axis] / divisor[axis];
    bool reached = place >= 0 && place % divisor[axis] == 0;
    return reached ? place / divisor[axis] % apart * inverses[axis] % apart : kernel[axis];
}
float element(int o) {
    int column = o % output_.z, rest = o / output_.z;
    int row = rest % output_.y;
    rest /= output_.y;
    int slice = rest % output_.x;
    rest /= output_.x;
    int m = rest % outputs, n = rest / outputs, per_group = outputs * depth / channels;
    int group = m / per_group, volume = size.x * size.y * size.z;
    ivec3 place = ivec3(slice, row, column) + begin.xyz, apart = stride.xyz / divisor.xyz;
    int first_row = first_tap(place.y, 1), first_column = first_tap(place.z, 2);
    float total = has_bias == 1 ? B(m) : 0.0;
    for (int i = first_tap(place.x, 0); i < kernel.x; i += apart.x) {
        int z = (place.x - i * dilation.x) / stride.x;
        for (int j = first_row; j < kernel.y; j += apart.y) {
            int y = (place.y - j * dilation.y) / stride.y;
            for (int k = first_column; k < kernel.z; k += apart.z) {
                int x = (place.z - k * dilation.z) / stride.z;
                bool inside = z >= 0 && z < size.x && y >= 0 && y < size.y && x >= 0 && x < size.z;
                int at = (n * channels + group * depth) * volume + (z * size.y + y) * size.z + x;
                int tap = (i * kernel.y + j) * kernel.z + k;
                int w = group * weight.x + (m - group * per_group) * weight.y + tap * weight.z;
                for (int c = 0; c < (inside ? depth : 0); ++c) total += X(at + c * volume) * W(w + c * weight.w);
            }
        }
    }
    return epilogue(total);
}
