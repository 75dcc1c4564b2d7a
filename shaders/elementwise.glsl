//@ input X0 elements if ELEMENTS, texels
//@ input X1 elements if ELEMENTS, texels
//@ input X2 elements if ELEMENTS, texels
//@ input X3 elements if ELEMENTS, texels
//@ input X4 elements if ELEMENTS, texels
//@ param ivec4 shape[2]
//@ param ivec4 strides[10]
//@ param ivec4 flat_[2]
//@ param int rank
//@ unit texel
// A formula of up to five operands, four output elements at once. flat_[k] is 1 if operand k is read in the output's
// order, and 2 if it is one number. With STRIDED others are read by strides: 3 if four elements are the same number, and
// 4 if they are a texel. With ELEMENTS, 0 reads each element by itself. An if costs llvmpipe both its sides; a loop
// without rounds costs it nothing.
#if defined(STRIDED) || defined(ELEMENTS)
//@ include strides
#endif
#ifdef ELEMENTS
#define OPERAND(k) VECTOR##k v##k; { \
    int how = flat_[k >> 2][k & 3]; \
    if (how == 1) v##k = X##k##_texel(t); \
    else v##k = X##k##_at(how == 2 ? ivec4(0) : strided_four(k, t * 4)); \
}
#else
#ifdef STRIDED
#define PLACE(k) for (int rounds = how > 2 ? 1 : 0; rounds > 0; --rounds) at = strided(k, t * 4);
#else
#define PLACE(k)
#endif
#define OPERAND(k) VECTOR##k v##k; { \
    int how = flat_[k >> 2][k & 3], at = how == 1 ? t * 4 : 0; \
    PLACE(k) \
    v##k = X##k##_texel(at >> 2); \
    v##k = how == 2 || how == 3 ? VECTOR##k(v##k[at & 3]) : v##k; \
}
#endif
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
