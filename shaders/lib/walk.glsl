// The walk of a lane over elements `begin` to `end` of X. By rows, the elements of a result follow each other from
// first.x on, and four of them are read at once. Otherwise those of four results are read at once, from `first` on and
// `step_` apart; `whole` says that these four are always a texel. Short rows are read four at a time, and turned.
// WALK(EACH) calls EACH(x, at) for each vector and the indices of its elements in their rows. Where a row has no whole
// texel, the other three numbers are NOTHING, and their indices -1. X_VECTOR is the type of X's vectors.
// An if costs llvmpipe both its sides; a loop without rounds costs it nothing.
#ifndef X_VECTOR
#define X_VECTOR O_VECTOR
#endif
ivec4 first;
int begin, end, step_;
int quotient(int a, int b) {
    int result = b == 1 ? a : 0;
    for (int more = b > 1 && a >= b ? 1 : 0; more > 0; --more) result = a / b;
    return result;
}
#define WALK(EACH) { \
    int piece = by_rows == 1 ? 4 : 1, head = by_rows == 1 ? min(begin + (-first.x - begin & 3), end) : begin; \
    int rest = head + (end - head & -piece), before = head - begin, more = by_rows == 1 ? before + end - rest : 0; \
    bool is_run = first == first.x + ivec4(0, 1, 2, 3), is_whole = by_rows == 1 || whole == 1; \
    for (int i = head + lane() * piece; i < (is_whole ? rest : 0); i += LANES * piece) { \
        EACH(X_texel(first.x + i * step_ >> 2), i + (by_rows == 1 ? ivec4(0, 1, 2, 3) : ivec4(0))) \
    } \
    for (int i = begin + lane(); i < (!is_whole && is_run ? end : 0); i += LANES) { \
        EACH(X_four(first.x + i * step_), ivec4(i)) \
    } \
    int turned = step_ == 1 && !is_whole && !is_run ? begin + (end - begin & -4) : begin; \
    for (int i = begin + lane() * 4; i < turned; i += LANES * 4) { \
        X_VECTOR a = X_four(first.x + i), b = X_four(first.y + i), c = X_four(first.z + i), d = X_four(first.w + i); \
        for (int k = 0; k < 4; ++k) { EACH(X_VECTOR(a[k], b[k], c[k], d[k]), ivec4(i + k)) } \
    } \
    for (int i = turned + lane(); i < (!is_whole && !is_run ? end : 0); i += LANES) { \
        ivec4 at = first + i * step_; \
        EACH(X_VECTOR(X(at.x), X(at.y), X(at.z), X(at.w)), ivec4(i)) \
    } \
    for (int i = lane(); i < more; i += LANES) { \
        int at = (i < before ? begin : rest - before) + i; \
        EACH(X_VECTOR(X(first.x + at), NOTHING, NOTHING, NOTHING), ivec4(at, -1, -1, -1)) \
    } \
}
