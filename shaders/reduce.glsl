//@ input X elements texels
//@ param ivec4 kept[2]
//@ param ivec4 kept_strides[2]
//@ param ivec4 reduced[2]
//@ param ivec4 reduced_strides[2]
//@ param int kept_rank
//@ param int blocks_rank
//@ param int inner
//@ param int apart
//@ param int results
//@ param int stride
//@ param int count
//@ param int run
//@ param int divisor
//@ param int prepared
//@ param int finished
//@ param int by_rows
//@ param int whole
//@ param int lanes
//@ param int across
//@ unit texel, grid if SCATTERED
//@ long
//@ include together
//@ include walk
// O[part, k] = finish(prepare(x) joined over a run of the reduced dims, divisor). Long reductions are done in parts, each
// of `stride` results, and later passes reduce the parts. Only the first pass prepares elements, and only the last pass
// finishes the result. (Formulas make START of START.)
#define NOTHING START
int offset(int o, int rank, ivec4 low_shape, ivec4 high_shape, ivec4 low, ivec4 high) {
    int at = 0;
    for (int d = rank - 1; d > 0; --d) {
        int dim = d < 4 ? low_shape[d] : high_shape[d - 4];
        int rest = o / dim;
        at += (o - rest * dim) * (d < 4 ? low[d] : high[d - 4]);
        o = rest;
    }
    return at + o * low.x;
}
int place_of(int k) {
    return offset(min(k, results - 1), kept_rank, kept[0], kept[1], kept_strides[0], kept_strides[1]);
}
#define FORMULA(x) O_TYPE(formula(x))
O_VECTOR prepare(O_VECTOR x) {
    return prepared == 1 ? x : O_VECTOR(FORMULA(x.x), FORMULA(x.y), FORMULA(x.z), FORMULA(x.w));
}
O_VECTOR both(O_VECTOR a, O_VECTOR b) {
    return O_VECTOR(JOIN(a.x, b.x), JOIN(a.y, b.y), JOIN(a.z, b.z), JOIN(a.w, b.w));
}
TOGETHER_BY(all_of, both)
#define JOIN_IT(x, at) total = both(total, prepare(x));
O_VECTOR lane_of(int result) {
    int part = quotient(result, stride), k = result - part * stride, start = part * run, stop = min(start + run, count);
    ivec4 base = ivec4(place_of(k));
    for (int other = by_rows == 1 || whole == 1 ? 4 : 1; other < 4; ++other) base[other] = place_of(k + other);
    O_VECTOR total = O_VECTOR(START);
    step_ = apart;
    for (int block = quotient(start, inner); block * inner < stop; ++block) {
        first = base + offset(block, blocks_rank, reduced[0], reduced[1], reduced_strides[0], reduced_strides[1]);
        begin = max(start - block * inner, 0);
        end = min(stop - block * inner, inner);
        WALK(JOIN_IT)
    }
    return total;
}
O_TYPE joined(O_VECTOR x) {
    O_VECTOR pairs = both(x, x.zwzw);
    return JOIN(pairs.x, pairs.y);
}
O_TYPE finish(O_TYPE total) { return finished == 1 ? O_TYPE(epilogue(total, O_TYPE(divisor))) : total; }
#ifdef SCATTERED
void tile(ivec3 at) {
    int count_ = by_rows == 1 ? 1 : 4, result = result_of(at) * count_, last = min(result + count_, O_size);
    O_VECTOR total = all_of(lane_of(min(result, O_size - 1)));
    if (by_rows == 1) total.x = joined(total);
    if (lane() == 0) for (int k = result; k < last; ++k) store(k, finish(total[k - result]));
}
#else
O_VECTOR texel(int t) {
    O_VECTOR total = O_VECTOR(START);
    int rows = min(O_size - t * 4, by_rows == 1 ? 4 : 1);
    for (int k = 0; k < rows; ++k) {
        O_VECTOR found = lane_of(t * 4 + k);
        if (by_rows == 1) total[k] = joined(found);
        else total = found;
    }
    return O_VECTOR(finish(total.x), finish(total.y), finish(total.z), finish(total.w));
}
#endif
