//@ input T
//@ param ivec4 size
//@ param int dims
//@ param int align_corners
// O[n, z, y, x, k] = T[n, k] times (x, y, z, 1), coordinates counted from -1 to 1.
float coordinate(int at, int extent) {
    if (align_corners == 1) return extent > 1 ? 2.0 * float(at) / float(extent - 1) - 1.0 : 0.0;
    return float(2 * at + 1) / float(extent) - 1.0;
}
float element(int o) {
    int k = o % dims, rest = o / dims;
    int map = (rest / (size.x * size.y * size.z) * dims + k) * (dims + 1);
    float total = T(map + dims);
    for (int d = 0; d < dims; ++d) {
        int extent = size[2 - d];
        total += T(map + d) * coordinate(rest % extent, extent);
        rest /= extent;
    }
    return total;
}
