//@ input X
//@ param ivec4 size[2]
//@ param ivec4 shape[2]
//@ param ivec4 before[2]
//@ param int rank
//@ param int mode
//@ param O_TYPE value
// An element outside the input is `value` (mode 0), the reflection (1), the edge (2), or the other end (3).
O_TYPE element(int o) {
    int at = 0, scale = 1;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], extent = size[d >> 2][d & 3];
        int c = o % dim - before[d >> 2][d & 3];
        o /= dim;
        if (mode == 0) { if (c < 0 || c >= extent) return value; }
        else if (mode == 1) {
            int period = max(1, 2 * (extent - 1));
            c = abs(c) % period;
            c = c < extent ? c : period - c;
        }
        else if (mode == 2) c = min(max(c, 0), extent - 1);
        else c = c < 0 ? extent - 1 - (-c - 1) % extent : c % extent;
        at += c * scale;
        scale *= extent;
    }
    return X(at);
}
