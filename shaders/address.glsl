//@ input I
//@ param ivec4 dims[2]
//@ param ivec4 strides[2]
//@ param int depth
//@ param int count
//@ param int rows
// The address of a tuple of indices: its row, counted over all batches. If an index is outside its dim, the address is
// the largest int.
O_TYPE element(int o) {
    int at = o / count * rows;
    for (int d = 0; d < depth; ++d) {
        int index = int(I(o * depth + d)), dim = dims[d >> 2][d & 3];
        index += index < 0 ? dim : 0;
        if (index < 0 || index >= dim) return O_TYPE(0x7fffffff);
        at += index * strides[d >> 2][d & 3];
    }
    return O_TYPE(at);
}
