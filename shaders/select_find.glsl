//@ input R
//@ param int size
//@ param int inner
//@ param int count
//@ long
// For each output element, the index in its row of the element with this rank.
int element(int o) {
    int rank = o / inner % count, first = o / inner / count * size * inner + o % inner;
    int found = 0;
    for (int i = 0; i < size; ++i)
        if (int(R(first + i * inner)) == rank) found = i;
    return found;
}
