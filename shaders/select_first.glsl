//@ input I
//@ param int inner
//@ param int count
//@ param int padded
// The first `count` of each row of sorted places, as the output lays them out.
int element(int o) {
    int row = o / inner / count * inner + o % inner;
    return int(I(row * padded + o / inner % count));
}
