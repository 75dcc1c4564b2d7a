//@ input X
//@ param ivec4 size[2]
//@ param ivec4 shape[2]
//@ param ivec4 before[2]
//@ param int rank
//@ param O_TYPE value
// An element outside the input is `value`, the REFLECTION, the EDGE, or the other end (WRAPS).
int inside_of(int c, int extent) {
#if defined(REFLECTION)
    int period = max(1, 2 * (extent - 1));
    c = abs(c) % period;
    return c < extent ? c : period - c;
#elif defined(WRAPS)
    return c < 0 ? extent - 1 - (-c - 1) % extent : c % extent;
#else
    return max(min(c, extent - 1), 0); // 0 where nothing is inside
#endif
}
O_TYPE element(int o) {
    int at = 0, scale = 1;
    bool is_inside = true;
    for (int d = rank - 1; d > 0; --d) {
        int dim = shape[d >> 2][d & 3], extent = size[d >> 2][d & 3], rest = o / dim;
        int c = o - rest * dim - before[d >> 2][d & 3];
        is_inside = is_inside && c >= 0 && c < extent;
        at += inside_of(c, extent) * scale;
        scale *= extent;
        o = rest;
    }
    int c = o - before[0].x;
    at += inside_of(c, size[0].x) * scale;
#if defined(REFLECTION) || defined(EDGE) || defined(WRAPS)
    return X(at);
#else
    return is_inside && c >= 0 && c < size[0].x ? X(at) : value;
#endif
}
