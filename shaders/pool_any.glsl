//@ input X
//@ param ivec4 size
//@ param ivec4 output_
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ param ivec4 end
//@ param ivec4 places
//@ param int kind
//@ param float p
//@ param int count_padding
// Pooling over three dims, with the kinds of pool.glsl. INDEX: the index of the largest element, by the strides
// `places` in its plane, and counted over all planes.
O_TYPE element(int o) {
    int c = o % output_.z, b = o / output_.z % output_.y, rest = o / (output_.z * output_.y);
    int a = rest % output_.x, plane = rest / output_.x;
    float total = kind == 0 ? NOTHING : 0.0;
    int count = 0, found = -1;
    for (int i = 0; i < kernel.x; ++i) for (int j = 0; j < kernel.y; ++j) for (int k = 0; k < kernel.z; ++k) {
        ivec3 at = ivec3(a, b, c) * stride.xyz - begin.xyz + ivec3(i, j, k) * dilation.xyz;
        bool inside = all(greaterThanEqual(at, ivec3(0))) && all(lessThan(at, size.xyz));
        if (inside) {
            float value = float(X(((plane * size.x + at.x) * size.y + at.y) * size.z + at.z));
            if (kind == 0 && (found < 0 || value > total || is_nan(value))) {
                total = value;
                found = plane * size.x * size.y * size.z + at.x * places.x + at.y * places.y + at.z * places.z;
            }
            if (kind == 1) total += value;
            if (kind == 2) total += p == 2.0 ? value * value : p == 1.0 ? abs(value) : power(abs(value), p);
        }
        if (inside || (count_padding == 1 && all(lessThan(at, size.xyz + end.xyz)))) ++count;
    }
#ifdef INDEX
    return found;
#else
    if (kind == 2) total = p == 2.0 ? sqrt(total) : p == 1.0 ? total : power(total, 1.0 / p);
    return O_TYPE(kind == 1 ? total / float(count) : total);
#endif
}
