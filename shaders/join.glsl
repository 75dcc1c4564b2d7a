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
#define PART(k) if (c < first[k >> 2][k & 3] + run[k >> 2][k & 3]) return X##k(row * run[k >> 2][k & 3] + c - first[k >> 2][k & 3]);
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
