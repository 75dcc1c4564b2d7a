//@ input X
//@ param ivec4 size
//@ param ivec4 output_
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ param ivec4 end
//@ param ivec4 index_stride
//@ param int kind
//@ param float p
//@ param int count_padding
//@ long
// The largest element (kind 0), the average (1) or the p-norm (2) of a window over each plane. With INDEX: the index of
// the largest element, counted over all planes. NOTHING is the largest element of a window that holds only padding.
// A plane is one slice of a volume, and compilers drop the loop over slices.
#ifdef VOLUME
#define IN_VOLUME(number, otherwise) (number)
#else
#define IN_VOLUME(number, otherwise) (otherwise)
#endif
O_TYPE element(int o) {
    int column = o % output_.z, row = o / output_.z % output_.y, rest = o / (output_.z * output_.y);
    int slice = IN_VOLUME(rest % output_.x, 0), plane = IN_VOLUME(rest / output_.x, rest);
    float total = kind == 0 ? -1.0 / 0.0 : 0.0;
    int count = 0, found = -1;
    for (int i = 0; i < IN_VOLUME(kernel.x, 1); ++i) {
        int z = IN_VOLUME(slice * stride.x - begin.x + i * dilation.x, 0);
        for (int j = 0; j < kernel.y; ++j) {
            int y = row * stride.y - begin.y + j * dilation.y;
            for (int k = 0; k < kernel.z; ++k) {
                int x = column * stride.z - begin.z + k * dilation.z;
                bool inside = IN_VOLUME(z >= 0 && z < size.x, true) && y >= 0 && y < size.y && x >= 0 && x < size.z;
                if (inside) {
                    float value = float(X((IN_VOLUME(plane * size.x + z, plane) * size.y + y) * size.z + x));
#ifdef INDEX
                    if (found < 0 || value > total || is_nan(value))
                        found = z * index_stride.x + y * index_stride.y + x * index_stride.z;
#endif
                    if (kind == 2) value = p == 2.0 ? value * value : p == 1.0 ? abs(value) : power(abs(value), p);
                    total = kind == 0 ? maximum(total, value) : total + value;
                }
                if (inside || (count_padding == 1 && IN_VOLUME(z < size.x + end.x, true)
                    && y < size.y + end.y && x < size.z + end.z)) ++count;
            }
        }
    }
#ifdef INDEX
    return found < 0 ? found : plane * IN_VOLUME(size.x, 1) * size.y * size.z + found;
#else
    if (kind == 0) return count == 0 ? NOTHING : O_TYPE(total);
    if (kind == 2) total = p == 2.0 ? sqrt(total) : p == 1.0 ? total : power(total, 1.0 / p);
    return O_TYPE(kind == 1 ? total / float(count) : total);
#endif
}
