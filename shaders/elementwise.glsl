//@ input X0 elements texels
//@ input X1 elements texels
//@ input X2 elements texels
//@ input X3 elements texels
//@ input X4 elements texels
//@ param ivec4 shape[2]
//@ param ivec4 strides[10]
//@ param ivec4 flat_[2]
//@ param int rank
//@ unit texel
// A formula of up to five operands, four output elements at once. flat_[k] is 1 if operand k is read in the output's
// order, 2 if it is one number, and 0 if it is read by strides (STRIDED).
#ifdef STRIDED
//@ include strides
#define ELSEWHERE(k, how) (how == 2 ? ivec4(0) : strided_four(k, t * 4))
#else
#define ELSEWHERE(k, how) ivec4(0)
#endif
#define OPERAND(k) VECTOR##k v##k; { \
    int how = flat_[k >> 2][k & 3]; \
    if (how == 1) v##k = X##k##_texel(t); \
    else v##k = X##k##_at(ELSEWHERE(k, how)); \
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
