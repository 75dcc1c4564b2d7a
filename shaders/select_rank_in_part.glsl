//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int held
//@ param int part
//@ param int fresh
//@ param int largest
//@ long
// The rank of each candidate in its part of the row: the number of candidates that come before it. A row holds `held`
// candidates, in parts of `part`: indices in I, or at first (fresh) all its elements. A negative index stands for none;
// it has no rank. Of equal elements the earlier candidate comes first, which has the lower index.
//@ include order
int element(int o) {
    int row = o / held, from = row * held, at = o - from, rank = 0;
    int mine = fresh == 1 ? at : int(I(o)), start = row / inner * size * inner + row % inner;
    if (mine < 0) return -1;
    T x = X(start + mine * inner);
    int begin = at / part * part, end = min(begin + part, held);
    for (int i = begin; i < end; ++i) {
        int other = fresh == 1 ? i : int(I(from + i));
        T y = X(start + max(other, 0) * inner);
        if (other >= 0 && (before(y, x) || (i < at && !before(x, y)))) ++rank;
    }
    return rank;
}
