//@ input X texels
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param ivec2 end
//@ param int largest
//@ param int count_padding
//@ unit texel
// The largest elements or the averages of a window over planes of channel blocks. A texel is four channels of a pixel.
vec4 larger(vec4 a, vec4 b) { return vec4(maximum(a.x, b.x), maximum(a.y, b.y), maximum(a.z, b.z), maximum(a.w, b.w)); }
vec4 texel(int t) {
    int rest = t / output_.y, plane = rest / output_.x;
    int x0 = (t - rest * output_.y) * stride.y - begin.y, y0 = (rest - plane * output_.x) * stride.x - begin.x;
    vec4 total = vec4(largest == 1 ? -1.0 / 0.0 : 0.0);
    int count = 0;
    for (int i = 0; i < kernel.x; ++i) {
        int y = y0 + i * dilation.x;
        for (int j = 0; j < kernel.y; ++j) {
            int x = x0 + j * dilation.y;
            bool inside = y >= 0 && y < size.x && x >= 0 && x < size.y;
            if (inside) {
                vec4 value = X_texel((plane * size.x + y) * size.y + x);
                total = largest == 1 ? larger(total, value) : total + value;
            }
            if (inside || (count_padding == 1 && y < size.x + end.x && x < size.y + end.y)) ++count;
        }
    }
    return largest == 1 ? total : total / float(count);
}
