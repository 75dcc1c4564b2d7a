//@ input X
//@ param int size
//@ param int inner
//@ param int reach
//@ param int rounds
//@ param int shift
//@ param int direction
// Each element joined with `rounds` - 1 others before it, `reach` apart: passes of growing reach make running sums or products.
// The first pass of an exclusive one begins a `shift` before.
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
