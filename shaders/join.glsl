//@ input X0
//@ input X1
//@ input X2
//@ input X3
//@ input X4
//@ input X5
//@ param ivec4 first[2]
//@ param ivec4 run[2]
//@ param int total
// Rows of up to six inputs, one after the other. With TEXEL, the rows are whole texels.
#define PART(k) if (c < first[k >> 2][k & 3] + run[k >> 2][k & 3]) return READ(k)(row * run[k >> 2][k & 3] + c - first[k >> 2][k & 3]);
#ifdef TEXEL
#define READ(k) X##k##_texel
#define VALUE O_VECTOR
VALUE texel(int o) {
#else
#define READ(k) X##k
#define VALUE O_TYPE
VALUE element(int o) {
#endif
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
    return VALUE(0);
}
