//@ input X0
//@ input X1
//@ input X2
//@ input X3
//@ input X4
//@ param ivec4 shape[2]
//@ param ivec4 strides[10]
//@ param ivec4 flat_[2]
//@ param int rank
// A formula of up to five operands. flat_[k] is 1 if operand k is read in the output's order, 2 if it is one number,
// and 0 if it is read by strides.
int offset(int k, int o) {
    int at = 0;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3];
        int rest = o / dim;
        at += (o - rest * dim) * strides[k * 2 + (d >> 2)][d & 3];
        o = rest;
    }
    return at;
}
int index(int k, int o) { int how = flat_[k >> 2][k & 3]; return how == 1 ? o : (how == 2 ? 0 : offset(k, o)); }
#define SCALAR(k, o) GET##k(X##k(index(k, o)))
#if OPERANDS == 1
#define ALL(o) SCALAR(0, o)
#elif OPERANDS == 2
#define ALL(o) SCALAR(0, o), SCALAR(1, o)
#elif OPERANDS == 3
#define ALL(o) SCALAR(0, o), SCALAR(1, o), SCALAR(2, o)
#elif OPERANDS == 4
#define ALL(o) SCALAR(0, o), SCALAR(1, o), SCALAR(2, o), SCALAR(3, o)
#else
#define ALL(o) SCALAR(0, o), SCALAR(1, o), SCALAR(2, o), SCALAR(3, o), SCALAR(4, o)
#endif
O_TYPE element(int o) { return RESULT(formula(ALL(o))); }
