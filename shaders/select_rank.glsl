//@ input X
//@ param int size
//@ param int inner
//@ param int largest
//@ long
// The rank of each element: the number of elements of its row that come before it. Of equal elements the lower index
// comes first.
//@ include order
int element(int o) {
    int at = o / inner % size, first = o - at * inner, rank = 0;
    T x = X(o);
    for (int i = 0; i < size; ++i) {
        T other = X(first + i * inner);
        if (before(other, x) || (i < at && !before(x, other))) ++rank;
    }
    return rank;
}
