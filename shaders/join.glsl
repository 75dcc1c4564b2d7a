//@ input X0
//@ input X1
//@ input X2
//@ input X3
//@ input X4
//@ input X5
//@ param ivec4 first[2]
//@ param ivec4 run[2]
//@ param int total
// Rows of up to six inputs, one after the other.
#define TEXEL
#define BEGIN(k) first[k >> 2][k & 3]
#define RUN(k) run[k >> 2][k & 3]
#define PART(k) if (c < BEGIN(k) + RUN(k)) return X##k(row * RUN(k) + c - BEGIN(k));
#define FOUR_OF_PART(k) if (c >= BEGIN(k) && c + 3 < BEGIN(k) + RUN(k)) return X##k##_four(row * RUN(k) + c - BEGIN(k));
O_TYPE element(int o) {
    int row = o / total, c = o - row * total;
    PART(0)
#if OPERANDS > 1
    PART(1)
#endif
#if OPERANDS > 2
    PART(2)
#endif
#if OPERANDS > 3
    PART(3)
#endif
#if OPERANDS > 4
    PART(4)
#endif
#if OPERANDS > 5
    PART(5)
#endif
    return O_TYPE(0);
}
O_VECTOR texel(int t) {
    int row = t * 4 / total, c = t * 4 - row * total;
    FOUR_OF_PART(0)
#if OPERANDS > 1
    FOUR_OF_PART(1)
#endif
#if OPERANDS > 2
    FOUR_OF_PART(2)
#endif
#if OPERANDS > 3
    FOUR_OF_PART(3)
#endif
#if OPERANDS > 4
    FOUR_OF_PART(4)
#endif
#if OPERANDS > 5
    FOUR_OF_PART(5)
#endif
    O_VECTOR result = O_VECTOR(0);
    int end = min(t * 4 + 4, O_size);
    for (int o = t * 4; o < end; ++o) result[o & 3] = element(o); // rare: compilers need not unroll it
    return result;
}
