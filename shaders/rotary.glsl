//@ input X
//@ input C
//@ input S
//@ param ivec4 shape[2]
//@ param ivec4 cos_steps[2]
//@ param ivec4 sin_steps[2]
//@ param int rank
//@ param int size
//@ param int interleaved
//@ param int by_pair
// Each number times its cosine, and the other number of its pair times its sine: a * cos - b * sin, b * cos + a * sin.
float element(int o) {
    int i = o % size, row = o / size, half_size = size / 2;
    bool second = interleaved == 1 ? (i & 1) == 1 : i >= half_size;
    int c = i, other = interleaved == 1 ? 1 : half_size;
    if (by_pair == 1) c = interleaved == 1 ? i >> 1 : i % half_size;
    int s = c;
    for (int d = rank - 1; d >= 0; --d) {
        int at = row % shape[d >> 2][d & 3];
        row /= shape[d >> 2][d & 3];
        c += at * cos_steps[d >> 2][d & 3];
        s += at * sin_steps[d >> 2][d & 3];
    }
    float turned = second ? X(o - other) : -X(o + other);
    return X(o) * C(c) + turned * S(s);
}
