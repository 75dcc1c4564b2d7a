//@ input X
//@ param int size
//@ param int inner
//@ param int run
//@ param int parts
//@ param int paired
// A pair of numbers for each part of each row: its largest element, and the sum of exp(x - largest) over all elements.
// Long rows are done in parts, and later passes (paired) join the pairs of parts.
#define LONG
float element(int o) {
    int pair = o >> 1;
    int row = pair / parts, begin = (pair - row * parts) * run;
    int first = paired == 1 ? row * size * 2 : row / inner * size * inner + row % inner;
    int stride = paired == 1 ? 2 : inner, end = min(begin + run, size);
    float largest = X(first + begin * stride);
    int i = begin;
    if (stride == 1)
        for (; i + 3 < end; i += 4) {
            vec4 four = X_four(first + i);
            for (int c = 0; c < 4; ++c) largest = maximum(largest, four[c]);
        }
    for (; i < end; ++i) largest = maximum(largest, X(first + i * stride));
    if ((o & 1) == 0) return largest;
    float total = 0.0;
    // If all elements are -infinity, so is `largest`, and the difference would be NaN.
#define SHARE(x) (x == -1.0 / 0.0 ? 0.0 : exp(x - largest))
    i = begin;
    if (stride == 1)
        for (; i + 3 < end; i += 4) {
            vec4 four = X_four(first + i);
            total += SHARE(four.x) + SHARE(four.y) + SHARE(four.z) + SHARE(four.w);
        }
    for (; i < end; ++i) {
        float x = X(first + i * stride);
        total += SHARE(x) * (paired == 1 ? X(first + i * stride + 1) : 1.0);
    }
    return total;
}
