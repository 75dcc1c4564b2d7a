//@ input X elements texels
//@ input I
//@ param int size
//@ param int inner
//@ param int results
//@ param int stride
//@ param int count
//@ param int run
//@ param int found_stride
//@ param int chained
//@ param int by_rows
//@ param int whole
//@ param int lanes
//@ param int across
//@ param int largest
//@ param int last
//@ unit texel, grid if SCATTERED
//@ long
//@ include together
//@ include walk
// The index of the largest or smallest element of each row. Long rows are done in parts, each of `stride` results; later
// passes (chained) choose among the `count` indices in I that the parts found. An index of -1 stands for no element.
//@ include order
#define NOTHING T(0)
ivec4 row; // the first elements of four rows, or of one
int place_of(int k) {
    k = min(k, results - 1);
    int outer = quotient(k, inner);
    return outer * size * inner + k - outer * inner;
}
bool comes_first(T a, int at, T b, int other) {
    bool earlier = (at < other) != (last == 1), equal_ = !before(a, b) && !before(b, a);
    return at >= 0 && (other < 0 || before(a, b) || equal_ && earlier);
}
int chosen(int a, int b, int start) {
    return comes_first(X(start + max(a, 0) * inner), a, X(start + max(b, 0) * inner), b) ? a : b;
}
ivec4 both(ivec4 a, ivec4 b) {
    return ivec4(chosen(a.x, b.x, row.x), chosen(a.y, b.y, row.y), chosen(a.z, b.z, row.z), chosen(a.w, b.w, row.w));
}
TOGETHER_BY(first_of, both)
#define TAKE(x, at) { \
    X_VECTOR other = x; \
    ivec4 where = at; \
    for (int n = 0; n < 4; ++n) { \
        bool takes = comes_first(other[n], where[n], best[n], found[n]); \
        best[n] = takes ? other[n] : best[n]; \
        found[n] = takes ? where[n] : found[n]; \
    } \
}
ivec4 lane_of(int result) {
    int part = quotient(result, stride), k = result - part * stride;
    row = ivec4(place_of(k));
    for (int other = by_rows == 1 || whole == 1 ? 4 : 1; other < 4; ++other) row[other] = place_of(k + other);
    if (whole == 1 && by_rows == 0) row += ivec4(0, 1, 2, 3);
    first = row;
    step_ = inner;
    begin = part * run;
    int stop = min(begin + run, count);
    X_VECTOR best = X_VECTOR(0);
    ivec4 found = ivec4(-1);
    end = chained == 1 ? begin : stop;
    WALK(TAKE)
    for (int i = begin + lane(); i < (chained == 1 ? stop : 0); i += LANES) {
        ivec4 at;
        for (int n = 0; n < 4; ++n) at[n] = int(I(i * found_stride + min(k + n, results - 1)));
        ivec4 places = row + at * inner;
        TAKE(X_VECTOR(X(places.x), X(places.y), X(places.z), X(places.w)), at)
    }
    return found;
}
int first_of_four(ivec4 found) { return chosen(chosen(found.x, found.y, row.x), chosen(found.z, found.w, row.x), row.x); }
#ifdef SCATTERED
void tile(ivec3 at) {
    int count_ = by_rows == 1 ? 1 : 4, result = result_of(at) * count_, end_ = min(result + count_, O_size);
    ivec4 found = first_of(lane_of(min(result, O_size - 1)));
    if (by_rows == 1) found.x = first_of_four(found);
    if (lane() == 0) for (int k = result; k < end_; ++k) store(k, found[k - result]);
}
#else
ivec4 texel(int t) {
    ivec4 total = ivec4(0);
    int rows = min(O_size - t * 4, by_rows == 1 ? 4 : 1);
    for (int k = 0; k < rows; ++k) {
        ivec4 found = lane_of(t * 4 + k);
        if (by_rows == 1) total[k] = first_of_four(found);
        else total = found;
    }
    return total;
}
#endif
