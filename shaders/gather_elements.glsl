//@ input X
//@ input I
//@ param ivec4 shape[2]
//@ param ivec4 strides[2]
//@ param int rank
//@ param int size
//@ param int step_
// O[c] = X[c with the coordinate on one axis replaced by I[c]]; outside the axis it reads 0.
O_TYPE element(int o) {
    int index = int(I(o)), at = 0;
    index += index < 0 ? size : 0;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3];
        at += o % dim * strides[d >> 2][d & 3];
        o /= dim;
    }
    return index < 0 || index >= size ? O_TYPE(0) : X(at + index * step_);
}
