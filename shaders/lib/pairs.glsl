// A pair of numbers for each row of `size` elements, `inner` apart. Long rows are done in parts of `run` elements, each of
// `stride` pairs. Later passes (paired) join the pairs of parts, which lie `inner` apart.
// The body defines the pairs of the row that `begin`, `end` and `first` say, in .x, or of four rows.
void pairs(out vec4 one, out vec4 other);
int place_of(int row) {
    row = min(row, results - 1);
    int outer = quotient(row, inner);
    return (outer * (size - 1) * inner + row) * (paired == 1 ? 2 : 1);
}
void pairs_of(int result, out vec4 one, out vec4 other) {
    int part = quotient(result, stride), row = result - part * stride;
    begin = part * run;
    end = min(begin + run, size);
    step_ = inner * (paired == 1 ? 2 : 1);
    first = ivec4(place_of(row));
    for (int k = by_rows == 1 || whole == 1 ? 4 : 1; k < 4; ++k) first[k] = place_of(row + k);
    pairs(one, other);
}
float sum_of_four(vec4 x) { return x.x + x.y + (x.z + x.w); }
#ifdef SCATTERED
void tile(ivec3 at) {
    int rows = by_rows == 1 ? 1 : 4, result = result_of(at) * rows, last = min(result + rows, O_size / 2);
    vec4 one, other;
    pairs_of(min(result, O_size / 2 - 1), one, other);
    if (lane() == 0)
        for (int k = result; k < last; ++k) {
            store(2 * k, one[k - result]);
            store(2 * k + 1, other[k - result]);
        }
}
#else
vec4 texel(int t) {
    vec4 one, other, result = vec4(0.0);
    int rows = by_rows == 1 ? 2 : 1;
    for (int k = 0; k < rows; ++k) {
        pairs_of(min(by_rows == 1 ? 2 * t + k : t / 2 * 4, O_size / 2 - 1), one, other);
        if (by_rows == 0) result = (t & 1) == 0 ? vec4(one.x, other.x, one.y, other.y) : vec4(one.z, other.z, one.w, other.w);
        else if (k == 0) result.xy = vec2(one.x, other.x);
        else result.zw = vec2(one.x, other.x);
    }
    return result;
}
#endif
