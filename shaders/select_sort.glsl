//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int padded
//@ param int block
//@ param int reach
//@ param int fresh
//@ param int largest
// A pass of a bitonic sort of each row's indices. Rows are `padded` to a power of two with indices that come last. Each
// is compared with its partner, `reach` away, in blocks of alternating direction. In the first pass (fresh) they
// are still in order.
//@ include order
bool precedes(int a, int b, int first) {
    if (a >= size || b >= size) return a < b;
    T x = X(first + a * inner), y = X(first + b * inner);
    return before(x, y) || (a < b && !before(y, x));
}
int element(int o) {
    int row = o / padded, at = o - row * padded, partner = at ^ reach;
    int a = fresh == 1 ? at : int(I(o)), b = fresh == 1 ? partner : int(I(row * padded + partner));
    bool wanted = (at < partner) == ((at & block) == 0);
    return precedes(a, b, row / inner * size * inner + row % inner) == wanted ? a : b;
}
