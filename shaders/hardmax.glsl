//@ input I
//@ param int size
//@ param int inner
// 1 at the index I of each row, else 0.
float element(int o) {
    int row = o / inner / size * inner + o % inner;
    return int(I(row)) == o / inner % size ? 1.0 : 0.0;
}
