//@ input X
//@ input I
//@ param ivec4 shape[2]
//@ param ivec4 whole[2]
//@ param int rank
//@ unit tile
// Stores one element at its index in a tensor of dims `whole`. The output is zero by then.
void tile(int i) {
    int index = int(I(i)), at = 0, step_ = 1;
    if (index < 0) return;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], size = whole[d >> 2][d & 3], c = index % size;
        if (c >= dim) return;
        index /= size;
        at += c * step_;
        step_ *= dim;
    }
    if (index == 0) store(at, X(i));
}
