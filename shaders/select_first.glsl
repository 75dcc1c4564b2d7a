//@ input I
//@ param int inner
//@ param int count
//@ param int padded
// The first `count` of the sorted indices of each row, in the output's layout.
int element(int o) {
    int row = o / inner / count * inner + o % inner;
    return int(I(row * padded + o / inner % count));
}
