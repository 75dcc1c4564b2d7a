//@ input I
//@ input U
//@ param ivec4 extent[2]
//@ param ivec4 strides[2]
//@ param ivec4 index_step[2]
//@ param ivec4 update_step[2]
//@ param int rank
//@ param int axis
//@ param int size
//@ unit tile
// Stores one update at its index. The output is a copy of the data by then.
void tile(int u) {
    int at = 0, i = 0, rest = u;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = extent[d >> 2][d & 3], c = rest % dim;
        rest /= dim;
        i += c * index_step[d >> 2][d & 3];
        if (d != axis) at += c * strides[d >> 2][d & 3];
    }
    int index = int(I(i));
    index += index < 0 ? size : 0;
    if (index >= 0 && index < size) store(at + index * strides[axis >> 2][axis & 3], U(u));
}
