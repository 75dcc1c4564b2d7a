//@ input X
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param ivec2 end
//@ param int kind
//@ param float p
//@ param int count_padding
// The largest element (kind 0), the average (1) or the p-norm (2) of a window over each plane.
float element(int o) {
    int column = o % output_.y, row = o / output_.y % output_.x, plane = o / (output_.x * output_.y);
    float total = kind == 0 ? -1.0 / 0.0 : 0.0;
    int count = 0;
    for (int i = 0; i < kernel.x; ++i) {
        int y = row * stride.x - begin.x + i * dilation.x;
        for (int j = 0; j < kernel.y; ++j) {
            int x = column * stride.y - begin.y + j * dilation.y;
            bool inside = y >= 0 && y < size.x && x >= 0 && x < size.y;
            if (inside) {
                float value = X((plane * size.x + y) * size.y + x);
                if (kind == 2) value = p == 2.0 ? value * value : p == 1.0 ? abs(value) : power(abs(value), p);
                total = kind == 0 ? maximum(total, value) : total + value;
            }
            if (inside || (count_padding == 1 && y < size.x + end.x && x < size.y + end.y)) ++count;
        }
    }
    if (kind == 2) return p == 2.0 ? sqrt(total) : p == 1.0 ? total : power(total, 1.0 / p);
    return kind == 1 ? total / float(count) : total;
}
