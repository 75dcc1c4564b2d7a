//@ input X0
//@ input X1
//@ input X2
//@ input X3
//@ param ivec4 kept[2]
//@ param ivec4 kept_strides[8]
//@ param ivec4 reduced[2]
//@ param ivec4 reduced_strides[8]
//@ param int kept_rank
//@ param int reduced_rank
//@ param int count
//@ long
// O[kept] = the sum over the reduced dims of the product of up to four operands. Each operand has its own strides.
// Component k of an offset belongs to operand k.
ivec4 kept_offset(int o) {
    ivec4 at = ivec4(0);
    for (int d = kept_rank - 1; d >= 0; --d) {
        int dim = kept[d >> 2][d & 3], c = o % dim;
        o /= dim;
        for (int k = 0; k < OPERANDS; ++k) at[k] += c * kept_strides[k * 2 + (d >> 2)][d & 3];
    }
    return at;
}
ivec4 reduced_offset(int i) {
    ivec4 at = ivec4(0);
    for (int d = reduced_rank - 1; d >= 0; --d) {
        int dim = reduced[d >> 2][d & 3], c = i % dim;
        i /= dim;
        at += c * ivec4(reduced_strides[d >> 2][d & 3], reduced_strides[2 + (d >> 2)][d & 3],
                        reduced_strides[4 + (d >> 2)][d & 3], reduced_strides[6 + (d >> 2)][d & 3]);
    }
    return at;
}
O_TYPE element(int o) {
    ivec4 first = kept_offset(o);
    O_TYPE total = O_TYPE(0);
    for (int i = 0; i < count; ++i) {
        ivec4 at = first + (reduced_rank == 1
            ? i * ivec4(reduced_strides[0][0], reduced_strides[2][0], reduced_strides[4][0], reduced_strides[6][0])
            : reduced_offset(i));
        O_TYPE product = X0(at.x);
#if OPERANDS > 1
        product *= X1(at.y);
#endif
#if OPERANDS > 2
        product *= X2(at.z);
#endif
#if OPERANDS > 3
        product *= X3(at.w);
#endif
        total += product;
    }
    return WRAPPED(total);
}
