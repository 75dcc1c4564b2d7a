//@ input X
//@ input I
//@ param ivec4 shape[2]
//@ param ivec4 whole[2]
//@ param int rank
// Stores one element at its index, which is a place in a tensor of dims `whole`. The output is zero by then.
#define TILE
void tile(int i) {
    int place = int(I(i)), at = 0, step_ = 1;
    if (place < 0) return;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], size = whole[d >> 2][d & 3], c = place % size;
        if (c >= dim) return;
        place /= size;
        at += c * step_;
        step_ *= dim;
    }
    if (place == 0) store(at, X(i));
}
