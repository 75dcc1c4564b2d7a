//@ input X
//@ param ivec4 kept[2]
//@ param ivec4 kept_strides[2]
//@ param ivec4 reduced[2]
//@ param ivec4 reduced_strides[2]
//@ param int kept_rank
//@ param int reduced_rank
//@ param int count
//@ param int run
//@ param int parts
//@ param int divisor
//@ param int prepared
//@ param int finished
// O[o, part] = finish(prepare(x) joined over a run of the reduced dims, divisor). Long reductions are done in parts,
// and later passes reduce the parts. Only the first pass prepares elements, and only the last pass finishes the result.
#define LONG
int offset(int o, int rank, ivec4 low_shape, ivec4 high_shape, ivec4 low, ivec4 high) {
    int at = 0;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = d < 4 ? low_shape[d] : high_shape[d - 4];
        int rest = o / dim;
        at += (o - rest * dim) * (d < 4 ? low[d] : high[d - 4]);
        o = rest;
    }
    return at;
}
#define PREPARED(x) (prepared == 1 ? x : O_TYPE(formula(x)))
O_TYPE element(int o) {
    int k = o / parts, begin = (o - k * parts) * run;
    int first = offset(k, kept_rank, kept[0], kept[1], kept_strides[0], kept_strides[1]);
    O_TYPE total = START;
    int i = begin, end = min(begin + run, count);
    if (reduced_rank == 1 && reduced_strides[0][0] == 1)
        for (; i + 3 < end; i += 4) {
            O_VECTOR four = X_four(first + i);
            for (int c = 0; c < 4; ++c) total = JOIN(total, PREPARED(four[c]));
        }
    for (; i < end; ++i) {
        int at = reduced_rank == 1 ? i * reduced_strides[0][0]
            : offset(i, reduced_rank, reduced[0], reduced[1], reduced_strides[0], reduced_strides[1]);
        total = JOIN(total, PREPARED(X(first + at)));
    }
    return finished == 1 ? O_TYPE(epilogue(total, O_TYPE(divisor))) : total;
}
