//@ input X elements if not WHOLE, texels if WHOLE
//@ param ivec4 shape[2]
//@ param ivec4 strides[2]
//@ param int rank
//@ param int offset
//@ unit texel
// O[o] = X[offset + sum(coordinate * stride)]: transposing, slicing, repeating, flipping. With WHOLE whole texels move,
// and all numbers count texels; with ROWS four elements lie in one row. An if costs llvmpipe both its sides.
//@ include strides
#ifdef WHOLE
O_VECTOR texel(int t) { return X_texel(offset + strided(0, t)); }
#else
#ifdef ROWS
O_VECTOR texel(int t) {
    ivec4 at = offset + strided_in_row(0, t * 4);
    return O_VECTOR(X(at.x), X(at.y), X(at.z), X(at.w));
}
#else
O_VECTOR texel(int t) { return X_at(offset + (rank == 0 ? ivec4(0) : strided_four(0, t * 4))); }
#endif
#endif
