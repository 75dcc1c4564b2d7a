// Which of two elements comes first: the larger one if `largest` is 1, otherwise the smaller one. NaN is the largest.
bool lost(float x) { return is_nan(x); }
bool lost(int x) { return false; }
bool before(T a, T b) {
    if (lost(a) || lost(b)) return lost(a) != lost(b) && lost(a) == (largest == 1);
    return largest == 1 ? a > b : a < b;
}
