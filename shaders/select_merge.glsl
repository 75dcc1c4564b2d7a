//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int largest
//@ param int run
//@ param int span
//@ param int parts
//@ param int kept
//@ param int last
// Merges each two neighboring runs of indices, and keeps the first `kept` of them. A row has `parts` runs of `run` indices
// in order, each the first of `span` elements; -1 stands for none. An element finds its place on the merge path (Odeh,
// Green and others, 2012): the number of indices before it that come from the first run. Of equal elements those of the
// first run come first. With `last` a single run is left, in the output's layout.
//@ include order
int element(int o) {
    int pairs = (parts + 1) / 2, row = last == 1 ? o / inner / kept * inner + o % inner : o / (pairs * kept);
    int at = last == 1 ? o / inner % kept : o % kept, pair = last == 1 ? 0 : o / kept % pairs;
    int start = row / inner * size * inner + row % inner, a = (row * parts + pair * 2) * run, b = a + run;
    int in_a = min(clamp(size - pair * 2 * span, 0, span), run);
    int in_b = pair * 2 + 1 < parts ? min(clamp(size - (pair * 2 + 1) * span, 0, span), run) : 0;
    if (at >= in_a + in_b) return -1;
    int low = max(at - in_b, 0), high = min(at, in_a);
    while (low < high) {
        int middle = (low + high) / 2;
        if (before(X(start + int(I(b + at - 1 - middle)) * inner), X(start + int(I(a + middle)) * inner))) high = middle;
        else low = middle + 1;
    }
    int other = at - low;
    if (other >= in_b) return int(I(a + low));
    if (low >= in_a) return int(I(b + other));
    int first = int(I(a + low)), second = int(I(b + other));
    return before(X(start + second * inner), X(start + first * inner)) ? second : first;
}
