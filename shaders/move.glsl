//@ input X
//@ param ivec4 shape[2]
//@ param ivec4 strides[2]
//@ param int rank
//@ param int offset
// O[o] = X[offset + sum(coordinate * stride)]: transposing, slicing, repeating, flipping.
O_TYPE element(int o) {
    int at = offset;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3];
        int rest = o / dim;
        at += (o - rest * dim) * strides[d >> 2][d & 3];
        o = rest;
    }
    return X(at);
}
