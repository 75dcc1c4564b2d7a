//@ input X0
//@ input X1
//@ input X2
//@ input X3
//@ input X4
//@ param ivec4 shape[2]
//@ param ivec4 strides[10]
//@ param ivec4 flat_[2]
//@ param int rank
// A formula of up to five operands, four output elements at once. flat_[k] is 1 if operand k is read in the output's
// order, 2 if it is one number, and 0 if it is read by strides.
#define TEXEL
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
ivec4 offsets(int k, int o) {
    int last = rank - 1, dim = shape[last >> 2][last & 3], step_ = strides[k * 2 + (last >> 2)][last & 3];
    if (o % dim + 3 < dim) return offset(k, o) + ivec4(0, 1, 2, 3) * step_; // in one row
    ivec4 all;
    for (int i = 0; i < 4; ++i) all[i] = offset(k, min(o + i, O_size - 1));
    return all;
}
#define OPERAND(k) VECTOR##k v##k; { \
    int how = flat_[k >> 2][k & 3]; \
    if (how == 1) v##k = X##k##_texel(t); \
    else { \
        ivec4 at = how == 2 ? ivec4(0) : offsets(k, t * 4); \
        if (at == ivec4(at.x)) v##k = VECTOR##k(X##k(at.x)); \
        else if (at == at.x + ivec4(0, 1, 2, 3)) v##k = X##k##_four(at.x); \
        else v##k = VECTOR##k(X##k(at.x), X##k(at.y), X##k(at.z), X##k(at.w)); \
    } \
}
#define GIVEN(k) GET##k(v##k[i])
#if OPERANDS == 1
#define ALL GIVEN(0)
#elif OPERANDS == 2
#define ALL GIVEN(0), GIVEN(1)
#elif OPERANDS == 3
#define ALL GIVEN(0), GIVEN(1), GIVEN(2)
#elif OPERANDS == 4
#define ALL GIVEN(0), GIVEN(1), GIVEN(2), GIVEN(3)
#else
#define ALL GIVEN(0), GIVEN(1), GIVEN(2), GIVEN(3), GIVEN(4)
#endif
O_VECTOR texel(int t) {
    OPERAND(0)
#if OPERANDS > 1
    OPERAND(1)
#endif
#if OPERANDS > 2
    OPERAND(2)
#endif
#if OPERANDS > 3
    OPERAND(3)
#endif
#if OPERANDS > 4
    OPERAND(4)
#endif
    O_VECTOR result;
    for (int i = 0; i < 4; ++i) result[i] = RESULT(formula(ALL));
    return result;
}
