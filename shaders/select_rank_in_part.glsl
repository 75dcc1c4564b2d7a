//@ input X
//@ param int size
//@ param int inner
//@ param int part
//@ param int largest
//@ long
// The rank of each element in its part of the row, row by row: the number of elements that come before it. Of equal
// elements the one with the lower index comes first.
//@ include order
int element(int o) {
    int row = o / size, at = o - row * size, rank = 0, start = row / inner * size * inner + row % inner;
    T x = X(start + at * inner);
    int begin = at / part * part, end = min(begin + part, size);
    for (int i = begin; i < end; ++i) {
        T y = X(start + i * inner);
        if (before(y, x) || (i < at && !before(x, y))) ++rank;
    }
    return rank;
}
