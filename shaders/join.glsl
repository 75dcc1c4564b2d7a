//@ input X0 elements if not WHOLE, texels if WHOLE
//@ input X1 elements if not WHOLE, texels if WHOLE
//@ input X2 elements if not WHOLE, texels if WHOLE
//@ input X3 elements if not WHOLE, texels if WHOLE
//@ input X4 elements if not WHOLE, texels if WHOLE
//@ input X5 elements if not WHOLE, texels if WHOLE
//@ param ivec4 first[2]
//@ param ivec4 run[2]
//@ param int total
//@ unit texel
// Rows of up to six inputs, one after the other. With WHOLE the rows are counted in texels.
#define BEGIN(k) first[k >> 2][k & 3]
#define RUN(k) run[k >> 2][k & 3]
#if OPERANDS == 1
#define EACH(m) m(0)
#elif OPERANDS == 2
#define EACH(m) m(0) m(1)
#elif OPERANDS == 3
#define EACH(m) m(0) m(1) m(2)
#elif OPERANDS == 4
#define EACH(m) m(0) m(1) m(2) m(3)
#elif OPERANDS == 5
#define EACH(m) m(0) m(1) m(2) m(3) m(4)
#else
#define EACH(m) m(0) m(1) m(2) m(3) m(4) m(5)
#endif
#ifdef WHOLE
#define PART(k) if (c < BEGIN(k) + RUN(k)) return X##k##_texel(row * RUN(k) + c - BEGIN(k));
O_VECTOR texel(int t) {
    int row = t / total, c = t - row * total;
    EACH(PART)
    return O_VECTOR(0);
}
#else
#define PART(k) if (c < BEGIN(k) + RUN(k)) return X##k(row * RUN(k) + c - BEGIN(k));
#define FOUR_OF_PART(k) if (c >= BEGIN(k) && c + 3 < BEGIN(k) + RUN(k)) return X##k##_four(row * RUN(k) + c - BEGIN(k));
O_TYPE element(int o) {
    int row = o / total, c = o - row * total;
    EACH(PART)
    return O_TYPE(0);
}
O_VECTOR texel(int t) {
    int row = t * 4 / total, c = t * 4 - row * total;
    EACH(FOUR_OF_PART)
    O_VECTOR result = O_VECTOR(0);
    int end = min(t * 4 + 4, O_size);
    for (int o = t * 4; o < end; ++o) result[o & 3] = element(o); // rare: compilers need not unroll it
    return result;
}
#endif
