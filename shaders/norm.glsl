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
    for (int i = begin + 1; i < end; ++i) largest = maximum(largest, X(first + i * stride));
    if ((o & 1) == 0) return largest;
    float total = 0.0;
    for (int i = begin; i < end; ++i) {
        float x = X(first + i * stride);
        if (x != -1.0 / 0.0) // if all elements are -infinity, so is `largest`, and the difference would be NaN
            total += exp(x - largest) * (paired == 1 ? X(first + i * stride + 1) : 1.0);
    }
    return total;
}
