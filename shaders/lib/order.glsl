// Which of two elements comes first: the larger one if `largest` is 1, otherwise the smaller one. NaN is the largest, or
// comes first in any case (NAN_FIRST).
#ifdef NAN_FIRST
#define FIRST_NAN true
#else
#define FIRST_NAN (largest == 1)
#endif
bool lost(float x) { return is_nan(x); }
bool lost(int x) { return false; }
bool before(T a, T b) {
    if (lost(a) || lost(b)) return lost(a) != lost(b) && lost(a) == FIRST_NAN;
    return largest == 1 ? a > b : a < b;
}
