//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int count
// The elements of each row at the indices I.
O_TYPE element(int o) {
    return X((o / inner / count * size + int(I(o))) * inner + o % inner);
}
