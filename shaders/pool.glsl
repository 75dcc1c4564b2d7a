//@ input X
//@ param ivec4 size
//@ param ivec4 output_
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ param ivec4 end
//@ param ivec4 index_stride
//@ param float p
//@ param int count_padding
//@ long
// The largest element, the AVERAGE or the p-norm (NORM) of a window over each plane. With INDEX: the index of the largest
// element, counted over all planes. NOTHING is the largest element of a window that holds only padding.
// A plane is one slice of a volume, and compilers drop the loop over slices.
#ifdef VOLUME
#define IN_VOLUME(number, otherwise) (number)
#else
#define IN_VOLUME(number, otherwise) (otherwise)
#endif
O_TYPE element(int o) {
    int column = o % output_.z, row = o / output_.z % output_.y, rest = o / (output_.z * output_.y);
    ivec3 many = kernel.xyz, gap = dilation.xyz, extent = size.xyz, edge = extent + end.xyz; // read once, not in the loops
    int slice = IN_VOLUME(rest % output_.x, 0), plane = IN_VOLUME(rest / output_.x, rest);
#if defined(AVERAGE) || defined(NORM)
    float total = 0.0;
#else
    float total = -1.0 / 0.0;
#endif
    ivec3 from = ivec3(slice, row, column) * stride.xyz - begin.xyz;
    int count = 0, found = -1;
    for (int i = 0; i < IN_VOLUME(many.x, 1); ++i) {
        int z = IN_VOLUME(from.x + i * gap.x, 0);
        for (int j = 0; j < many.y; ++j) {
            int y = from.y + j * gap.y;
            for (int k = 0; k < many.z; ++k) {
                int x = from.z + k * gap.z;
                bool inside = IN_VOLUME(z >= 0 && z < extent.x, true) && y >= 0 && y < extent.y && x >= 0 && x < extent.z;
                if (inside) {
                    float value = float(X((IN_VOLUME(plane * extent.x + z, plane) * extent.y + y) * extent.z + x));
#ifdef INDEX
                    if (found < 0 || value > total || is_nan(value))
                        found = z * index_stride.x + y * index_stride.y + x * index_stride.z;
#endif
#if defined(NORM)
                    total += p == 2.0 ? value * value : p == 1.0 ? abs(value) : power(abs(value), p);
#elif defined(AVERAGE)
                    total += value;
#else
                    total = maximum(total, value);
#endif
                }
                if (inside || (count_padding == 1 && IN_VOLUME(z < edge.x, true)
                    && y < edge.y && x < edge.z)) ++count;
            }
        }
    }
#ifdef INDEX
    return found < 0 ? found : plane * IN_VOLUME(size.x, 1) * size.y * size.z + found;
#elif defined(NORM)
    return O_TYPE(p == 2.0 ? sqrt(total) : p == 1.0 ? total : power(total, 1.0 / p));
#elif defined(AVERAGE)
    return O_TYPE(total / float(count));
#else
    return count == 0 ? NOTHING : O_TYPE(total);
#endif
}
