// Rows have touched.x elements. R has the numbers of touched.y rows that a run replaces, L those of the last run, and
// touched.w counts all rows. A unit is TOUCHED elements, and a row touches touched.z units at most. This is unit `i` of
// those that these rows touch, or -1.
int touched_unit(int i) {
    int k = i / touched.z;
    if (k >= 2 * touched.y) return -1;
    int row = k < touched.y ? int(R(k)) : int(L(k - touched.y));
    int unit = row * touched.x / TOUCHED + i % touched.z;
    return row >= 0 && row < touched.w && unit * TOUCHED < (row + 1) * touched.x ? unit : -1;
}
