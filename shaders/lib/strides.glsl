// a / b for 0 <= a < 2^30 and 0 < b, in floats and exact: llvmpipe divides vectors of ints one by one.
int divided(int a, int b) {
    float inverse = 1.0 / float(b);
    int whole = int(float(a) * inverse);
    whole += int(floor(float(a - whole * b) * inverse));
    int rest = a - whole * b;
    return whole + (rest >= b ? 1 : 0) - (rest < 0 ? 1 : 0);
}
// Element `o` of an output, by the strides of operand k: where it lies in it.
int strided(int k, int o) {
    int at = 0;
    for (int d = rank - 1; d > 0; --d) {
        int dim = shape[d >> 2][d & 3];
        int rest = divided(o, dim);
        at += (o - rest * dim) * strides[k * 2 + (d >> 2)][d & 3];
        o = rest;
    }
    return at + o * strides[k * 2].x;
}
// Four consecutive elements of an output, by the strides of operand k: where they lie in it.
ivec4 strided_in_row(int k, int o) {
    int last = rank - 1;
    return strided(k, o) + ivec4(0, 1, 2, 3) * strides[k * 2 + (last >> 2)][last & 3];
}
ivec4 strided_four(int k, int o) {
    int dim = shape[rank - 1 >> 2][rank - 1 & 3];
    if (o % dim + 3 < dim) return strided_in_row(k, o);
    ivec4 all;
    for (int i = 0; i < 4; ++i) all[i] = strided(k, min(o + i, O_size - 1));
    return all;
}
