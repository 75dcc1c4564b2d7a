//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int count
//@ param int run
//@ param int parts
//@ param int chained
//@ param int largest
//@ param int last
// The index of the largest or smallest element of each part of each row. Long rows are done in parts; later passes
// (chained) choose among the `count` indices in I that the parts found.
//@ include order
#define LONG
int element(int o) {
    int row = o / parts, begin = (o - row * parts) * run;
    int first = row / inner * size * inner + row % inner, found = 0;
    T best = T(0);
    for (int i = begin; i < min(begin + run, count); ++i) {
        int at = chained == 1 ? int(I(row * count + i)) : i;
        T x = X(first + at * inner);
        if (i == begin || before(x, best) || (last == 1 && !before(best, x))) {
            best = x;
            found = at;
        }
    }
    return found;
}
