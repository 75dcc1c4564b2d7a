//@ input X elements texels
//@ param int size
//@ param int inner
//@ param int results
//@ param int stride
//@ param int run
//@ param int paired
//@ param int by_rows
//@ param int whole
//@ param int lanes
//@ param int across
//@ unit texel, grid if SCATTERED
//@ long
//@ include together
//@ include walk
//@ include pairs
// The pair of a row for its softmax: its largest element, and the sum of exp(x - largest) over all elements.
#define NOTHING (-1.0 / 0.0)
vec4 larger(vec4 a, vec4 b) { return vec4(maximum(a.x, b.x), maximum(a.y, b.y), maximum(a.z, b.z), maximum(a.w, b.w)); }
vec4 sum(vec4 a, vec4 b) { return a + b; }
TOGETHER_BY(largest_of, larger)
TOGETHER_BY(sum_of, sum)
// If all elements are -infinity, so is `largest`, and the difference would be NaN.
float share(float x, float largest) { return x == -1.0 / 0.0 ? 0.0 : exp(x - largest); }
vec4 shares(vec4 x, vec4 largest) {
    return vec4(share(x.x, largest.x), share(x.y, largest.y), share(x.z, largest.z), share(x.w, largest.w));
}
void pairs(out vec4 largest, out vec4 total) {
    largest = vec4(NOTHING);
    total = vec4(0.0);
#define LARGER(x, at) largest = larger(largest, x);
    WALK(LARGER)
    largest = largest_of(largest);
    if (by_rows == 1) largest = vec4(maximum(maximum(largest.x, largest.y), maximum(largest.z, largest.w)));
    for (int i = begin + lane(); i < (paired == 1 ? end : 0); i += LANES) {
        ivec4 at = first + i * step_;
        vec4 found = shares(vec4(X(at.x), X(at.y), X(at.z), X(at.w)), largest);
        total += found * vec4(X(at.x + 1), X(at.y + 1), X(at.z + 1), X(at.w + 1));
    }
    end = paired == 1 ? begin : end;
#define ADD_SHARES(x, at) total += shares(x, largest);
    WALK(ADD_SHARES)
    total = sum_of(total);
    if (by_rows == 1) total.x = sum_of_four(total);
}
