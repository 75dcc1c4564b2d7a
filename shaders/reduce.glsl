//@ input X
//@ param ivec4 kept[2]
//@ param ivec4 kept_strides[2]
//@ param ivec4 reduced[2]
//@ param ivec4 reduced_strides[2]
//@ param int kept_rank
//@ param int reduced_rank
//@ param int count
// O[o] = finish(prepare(x) joined over the reduced dims, how many those were).
int place(int o, int rank, ivec4 low_shape, ivec4 high_shape, ivec4 low, ivec4 high) {
    int at = 0;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = d < 4 ? low_shape[d] : high_shape[d - 4];
        int rest = o / dim;
        at += (o - rest * dim) * (d < 4 ? low[d] : high[d - 4]);
        o = rest;
    }
    return at;
}
O_TYPE element(int o) {
    int first = place(o, kept_rank, kept[0], kept[1], kept_strides[0], kept_strides[1]);
    O_TYPE total = START;
    // partial sums keep float32's rounding small over long runs
    for (int i = 0; i < count;) {
        O_TYPE part = START;
        for (int stop = min(i + 64, count); i < stop; ++i) {
            int at = reduced_rank == 1 ? i * reduced_strides[0][0]
                : place(i, reduced_rank, reduced[0], reduced[1], reduced_strides[0], reduced_strides[1]);
            part = JOIN(part, formula(X(first + at)));
        }
        total = JOIN(total, part);
    }
    return O_TYPE(epilogue(total, O_TYPE(count)));
}
