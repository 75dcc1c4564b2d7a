// Four consecutive elements of an output, by the strides of operand k: where they lie in it.
int strided(int k, int o) {
    int at = 0;
    for (int d = rank - 1; d > 0; --d) {
        int dim = shape[d >> 2][d & 3];
        int rest = o / dim;
        at += (o - rest * dim) * strides[k * 2 + (d >> 2)][d & 3];
        o = rest;
    }
    return at + o * strides[k * 2].x;
}
ivec4 strided_four(int k, int o) {
    int last = rank - 1, dim = shape[last >> 2][last & 3], step_ = strides[k * 2 + (last >> 2)][last & 3];
    if (o % dim + 3 < dim) return strided(k, o) + ivec4(0, 1, 2, 3) * step_; // in one row
    ivec4 all;
    for (int i = 0; i < 4; ++i) all[i] = strided(k, min(o + i, O_size - 1));
    return all;
}
