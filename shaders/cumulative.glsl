//@ input X
//@ param int size
//@ param int inner
//@ param int reach
//@ param int rounds
//@ param int shift
//@ param int direction
// Each element is joined with `rounds` - 1 elements before it, `reach` apart. Passes of growing reach make running sums
// or products. If these are exclusive, `shift` lets the first pass begin one element before.
O_TYPE element(int o) {
    int at = o / inner % size;
    O_TYPE total = START;
    for (int k = 0; k < rounds; ++k) {
        int back = (k * reach + shift) * direction;
        if (at - back < 0 || at - back >= size) break;
        total = JOIN(total, X(o - back * inner));
    }
    return total;
}
